"""The report for other programs: one JSON document, described in docs/json.md."""

from __future__ import annotations

import json
from collections.abc import Mapping

from traindx import __version__
from traindx.facts import Json
from traindx.findings import Context, Finding, Silenced, fingerprint
from traindx.looks import looked
from traindx.records import EventKind
from traindx.report.story import judged
from traindx.run import Run
from traindx.store.codec import number

SCHEMA = 1


def render(run: Run) -> str:
    """The document as text: strict JSON, ASCII, the same for the same run."""
    return dumped(document(run))


def dumped(document: dict[str, Json]) -> str:
    """Plain data as text; numbers that are not finite become the strings JavaScript reads."""
    return json.dumps(_finite(document), allow_nan=False, indent=2)


def document(run: Run) -> dict[str, Json]:
    """The document as plain data, in which numbers may still be NaN or infinite."""
    verdict = judged(run)
    probed: dict[str, Json] = {"preflight": _preflight(run)} if run.is_preflight else {}
    return {
        "schema": SCHEMA,
        "tool": {"name": "traindx", "version": __version__},
        "run": _run(run),
        **probed,
        "rules": {
            "evaluated": [*sorted(verdict.evaluated)],
            "not_evaluated": [
                {"code": entry.code, "reason": entry.reason}
                for entry in sorted(verdict.not_evaluated, key=lambda entry: entry.code)
            ],
        },
        "skipped_sites": _skipped_sites(run),
        "contexts": [*dict.fromkeys(context.name for context in verdict.contexts)],
        "context_details": [_context(context) for context in verdict.contexts],
        "silenced": [_silenced(entry) for entry in verdict.silenced],
        "findings": [_finding(f) for f in sorted(verdict.findings, key=lambda f: f.id)],
    }


def _run(run: Run) -> dict[str, Json]:
    header = run.header
    return {
        "id": header.get("id"),
        "command": header.get("command"),
        "exit_code": header.get("exit_code"),
        "steps": run.steps,
        "measured_steps": run.measured_steps,
        "overhead_fraction": header.get("overhead_fraction"),
        "store": str(run.path) if run.path else None,
        "models": [*run.models],
    }


def _preflight(run: Run) -> dict[str, Json]:
    """What was probed before training, at what cost, and what was not."""
    header = run.header
    return {
        "quick": header.get("quick"),
        "estimate": header.get("estimate"),
        "least": header.get("least"),
        "most": header.get("most"),
        "seconds": header.get("seconds"),
        "state": header.get("state"),
        "case": header.get("case"),
        "probes": [
            {
                "name": probe.name,
                "seconds": probe.seconds,
                "estimate": probe.estimate,
                "least": probe.least,
                "most": probe.most,
                "reason": probe.reason or None,
                "failed": probe.failed,
                "trace": probe.trace or None,
            }
            for probe in looked(run)
        ],
    }


def _skipped_sites(run: Run) -> list[Json]:
    skipped = {
        (e.site.model, e.site.fqn, _text(e.detail.get("point")), _text(e.detail.get("reason")))
        for e in run.events(EventKind.SKIPPED)
    }
    return [
        {"model": model, "site": fqn, "point": point or None, "reason": reason}
        for model, fqn, point, reason in sorted(skipped)
    ]


def _context(context: Context) -> dict[str, Json]:
    return {
        "name": context.name,
        "reason": context.reason,
        "model": context.site.model,
        "site": context.site.fqn,
        "first_step": context.first_step,
        "last_step": context.last_step,
    }


def _silenced(entry: Silenced) -> dict[str, Json]:
    return {
        "fingerprint": fingerprint(entry.code, entry.site),
        "code": entry.code,
        "model": entry.site.model,
        "site": entry.site.fqn,
        "reason": entry.reason,
    }


def _text(value: Json) -> str:
    return "" if value is None else str(value)


def _finding(finding: Finding) -> dict[str, Json]:
    evidence = finding.evidence
    return {
        "id": finding.id,
        "fingerprint": finding.fingerprint,
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "status": "active" if finding.active else "cleared",
        "model": evidence.site.model,
        "site": evidence.site.fqn,
        "layers": [*evidence.layers],
        "point": evidence.point.value if evidence.point else None,
        "first_step": finding.first_step,
        "last_step": finding.last_step,
        "count": finding.count,
        "message": evidence.message,
        "evidence": _sorted(evidence.numbers),
        "thresholds": _sorted(finding.thresholds),
        "cause": evidence.cause,
        "fix": evidence.fix,
        "confounders_excluded": [*evidence.excluded],
        "caused_by": [*sorted(finding.caused_by)],
        "remedies": [*finding.remedies],
    }


def _sorted(numbers: Mapping[str, float]) -> dict[str, Json]:
    return {name: numbers[name] for name in sorted(numbers)}


def _finite(value: Json) -> Json:
    match value:
        case float():
            return number(value)
        case list():
            return [_finite(entry) for entry in value]
        case dict():
            return {key: _finite(entry) for key, entry in value.items()}
        case _:
            return value
