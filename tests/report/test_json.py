"""The report for programs: the keys, types and numbers that others rely on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.report.sample import IMG_NAME, MARKUP_NAME, sample_run
from traindx.report import json as json_report
from traindx.run import Run

Number = (int, float, str)  # NaN and the infinities are strings.
Maybe = type(None)
SHAPE: dict[str, Any] = {
    "schema": int,
    "tool": {"name": str, "version": str},
    "run": {
        "id": (str, Maybe),
        "command": [str],
        "exit_code": (int, Maybe),
        "steps": int,
        "measured_steps": int,
        "overhead_fraction": (*Number, Maybe),
        "store": (str, Maybe),
        "models": [str],
    },
    "rules": {"evaluated": [str], "not_evaluated": [{"code": str, "reason": str}]},
    "skipped_sites": [{"model": str, "site": str, "point": (str, Maybe), "reason": str}],
    "contexts": [str],
    "context_details": [
        {
            "name": str,
            "reason": str,
            "model": str,
            "site": str,
            "first_step": int,
            "last_step": (int, Maybe),
        }
    ],
    "silenced": [{"fingerprint": str, "code": str, "model": str, "site": str, "reason": str}],
    "findings": [
        {
            "id": int,
            "fingerprint": str,
            "code": str,
            "name": str,
            "severity": str,
            "status": str,
            "model": str,
            "site": str,
            "layers": [str],
            "point": (str, Maybe),
            "first_step": int,
            "last_step": int,
            "count": int,
            "message": str,
            "evidence": dict,
            "thresholds": dict,
            "cause": str,
            "fix": str,
            "confounders_excluded": [str],
            "caused_by": [int],
            "remedies": [str],
        }
    ],
}


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def misfits(value: Any, shape: Any, path: str = "$") -> list[str]:
    """Where a value departs from its shape."""
    if isinstance(shape, dict):
        if not isinstance(value, dict) or list(value) != list(shape):
            return [f"{path}: {value!r}"]
        return [m for key in shape for m in misfits(value[key], shape[key], f"{path}.{key}")]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{path}: {value!r}"]
        return [m for i, item in enumerate(value) for m in misfits(item, shape[0], f"{path}[{i}]")]
    return [] if isinstance(value, shape) else [f"{path}: {value!r}"]


def test_every_key_has_its_place_and_type() -> None:
    assert misfits(strict(json_report.render(sample_run())), SHAPE) == []


def test_the_shape_would_notice_a_missing_key() -> None:
    document = strict(json_report.render(sample_run()))
    del document["findings"][0]["fix"]
    assert len(misfits(document, SHAPE)) == 1


def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "json.md").read_text("utf-8")
    documented = set(re.findall(r"`([\w.]+)`", page))
    finding = SHAPE["findings"][0]
    nested = {*SHAPE["context_details"][0], *SHAPE["silenced"][0]}
    assert {
        *SHAPE["run"],
        *finding,
        *nested,
        "rules.evaluated",
        "rules.not_evaluated",
    } <= documented
    assert set(SHAPE) - {"rules"} <= documented


def test_the_example_in_the_docs_has_the_shape() -> None:
    page = (Path(__file__).parents[2] / "docs" / "json.md").read_text("utf-8")
    example = page.partition("```json\n")[2].partition("```")[0]
    assert misfits(strict(example), SHAPE) == []


def test_numbers_that_json_has_not_are_strings() -> None:
    spike = strict(json_report.render(sample_run()))["findings"][2]
    assert spike["evidence"] == {"norm": "Infinity", "times": "NaN"}


def test_names_arrive_exactly_as_the_program_chose_them() -> None:
    findings = strict(json_report.render(sample_run()))["findings"]
    assert findings[2]["site"] == MARKUP_NAME + ".weight"
    assert findings[3]["site"] == IMG_NAME


def test_causes_status_and_severity_are_those_of_the_verdict() -> None:
    findings = strict(json_report.render(sample_run()))["findings"]
    assert [f["caused_by"] for f in findings] == [[], [1], [], []]
    assert [f["status"] for f in findings] == ["active", "active", "active", "cleared"]
    assert [f["severity"] for f in findings] == ["error", "error", "warning", "info"]


def test_the_same_run_gives_the_same_bytes_in_ascii() -> None:
    once, again = json_report.render(sample_run()), json_report.render(sample_run())
    assert once == again
    assert once.isascii()


def test_an_unfinished_run_has_nulls_where_nothing_is_known() -> None:
    run = strict(json_report.render(Run()))["run"]
    assert [key for key, value in run.items() if value is None] == [
        "id", "command", "exit_code", "overhead_fraction", "store",
    ]  # fmt: skip
