"""A baseline: the findings of a run that are known, so that only new ones are told.

It is JSON: `{"schema": 1, "findings": [{"fingerprint": …, "code": …, "model": …, "site": …}]}`. The
fingerprint counts; code, model and site are for people.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from traindx.errors import UsageError
from traindx.findings import Finding, Verdict
from traindx.messages import say

SCHEMA = 1


def baseline_text(verdict: Verdict) -> str:
    """The active findings of a verdict as a baseline."""
    active = (finding for finding in verdict.findings if finding.active)
    entries = sorted((_entry(finding) for finding in active), key=lambda it: tuple(it.values()))
    return json.dumps({"schema": SCHEMA, "findings": entries}, indent=2) + "\n"


def _entry(finding: Finding) -> dict[str, str]:
    site = finding.evidence.site
    return {
        "code": finding.code,
        "model": site.model,
        "site": site.fqn,
        "fingerprint": finding.fingerprint,
    }


def read_baseline(file: Path) -> frozenset[str]:
    """The fingerprints of a baseline.

    Raises:
        UsageError: It cannot be read, or is none.
    """
    try:
        document: Any = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        text = say("Cannot read the baseline `{file}`: {why}.", file=file, why=error.strerror)
        raise UsageError(text) from error
    except (ValueError, RecursionError) as error:
        raise _none(file) from error
    if not isinstance(document, dict) or cast("dict[str, Any]", document).get("schema") != SCHEMA:
        raise _none(file)
    return frozenset(_fingerprint(file, entry) for entry in _entries(file, document))


def _entries(file: Path, document: Any) -> list[Any]:
    entries = document.get("findings")
    if not isinstance(entries, list):
        raise _none(file)
    return cast("list[Any]", entries)


def _fingerprint(file: Path, entry: Any) -> str:
    found = cast("dict[str, Any]", entry).get("fingerprint") if isinstance(entry, dict) else None
    if not isinstance(found, str):
        raise _none(file)
    return found


def _none(file: Path) -> UsageError:
    return UsageError(
        say(
            "`{file}` is no baseline of schema {schema}; `traindx check --write-baseline {file}` "
            "writes one.",
            file=file,
            schema=SCHEMA,
        )
    )
