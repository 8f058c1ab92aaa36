"""What a notebook shows of a run: few words, all of them text."""

from __future__ import annotations

from dataclasses import replace

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Finding, Severity, Verdict
from traindx.records import Description, Event, EventKind, Scalar, Site
from traindx.report.notebook import render
from traindx.run import Run

EVIL = "<img src=x onerror=alert(1)>"
EVIDENCE = Evidence(
    Site("net", EVIL),
    2,
    f"the norm of {EVIL} is 3\x1b[31m",
    {"norm": 3.0},
    fix=f"if a < b:\n    x('{EVIL}')",
)
FINDING = Finding(1, "G001", "vanishing-depth", Severity.ERROR, True, EVIDENCE, 0, 2, 3)


def run_with(*findings: Finding) -> Run:
    run = Run(
        [
            Description(0, ModelFacts("net", "Net", (ModuleFacts(EVIL, "Linear"),), ())),
            Scalar(0, "loss", 1.0, Site("net")),
            Event(0, EventKind.MEASURED),
        ]
    )
    run.verdict = Verdict(findings, evaluated=("G001",))
    return run


def test_a_finding_is_a_row_with_what_where_number_and_fix() -> None:
    shown = render(run_with(FINDING))
    assert shown.count("<tr>") == 2
    for part in ("error G001 vanishing-depth", "is 3", "if a &lt; b:\n    x("):
        assert part in shown


def test_whatever_comes_from_the_users_program_is_text() -> None:
    shown = render(run_with(FINDING))
    assert "<img" not in shown
    assert shown.count("&lt;img src=x onerror=alert(1)&gt;") == 3
    assert "\x1b" not in shown


def test_a_run_without_findings_is_one_line() -> None:
    shown = render(run_with())
    assert "<table" not in shown
    assert "1 step" in shown


def test_symptoms_are_counted_with_their_cause() -> None:
    symptom = replace(FINDING, id=2, caused_by=(1,))
    shown = render(run_with(FINDING, symptom))
    assert shown.count("<tr>") == 2
    assert "explains 1 more" in shown


def test_of_many_findings_the_first_are_shown_and_the_rest_counted() -> None:
    shown = render(run_with(*(replace(FINDING, id=i) for i in range(1, 9))))
    assert shown.count("<tr>") == 6
    assert "3 more findings are on the page." in shown


def test_it_speaks_chinese_where_that_is_wanted() -> None:
    shown = render(run_with(*(replace(FINDING, id=i) for i in range(1, 8))), language="zh-Hant")
    assert "另有 2 項診斷" in shown
