"""F011 mask-leak on runs written by hand."""

from __future__ import annotations

from tests.rules.probing import Probed
from traindx.facts import Json
from traindx.findings import Severity
from traindx.records import Event, EventKind, Site


def leaking(what: str) -> Probed:
    run = Probed("F011", "sequence-leaks", **{f"{what}_leak": 0.2})
    detail: dict[str, Json] = {"steps": 16, "changed_from": 8, "tolerance": 1e-4}
    return run.seen("attention", what=what, kind="MultiheadAttention", leak=0.2, **detail)


def test_fires_on_a_leak_of_the_future():
    (found,) = leaking("future").findings()
    assert found.severity is Severity.ERROR
    assert "outputs before position 8 of 16 move by 0.2" in found.evidence.message
    assert found.evidence.site.fqn == "attention"


def test_fires_as_a_warning_on_padding_that_leaks():
    (found,) = leaking("padding").findings()
    assert found.severity is Severity.WARNING


def test_silent_where_nothing_leaks():
    assert Probed("F011", "sequence-leaks", future_leak=0.0, padding_leak=0.0).findings() == []


def test_silent_on_what_another_probe_has_seen():
    run = Probed("F011", "sequence-leaks", future_leak=1e-6)
    detail: dict[str, Json] = {"probe": "batch-composition", "mode": "evaluation"}
    run.items.append(Event(-1, EventKind.OBSERVED, Site("net"), detail))
    assert run.findings() == []
