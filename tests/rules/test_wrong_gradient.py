"""G005 wrong-gradient: autograd beside differences."""

from __future__ import annotations

import pytest

from tests.rules.recording import Recording
from traindx.facts import Json
from traindx.findings import Severity
from traindx.records import EventKind


def probed(
    whole: float,
    own: dict[str, float] | None = None,
    *,
    cuts: tuple[str, ...] = (),
    functions: tuple[str, ...] = (),
) -> Recording:
    """A preflight that has found these errors."""
    recording = Recording()
    recording.scalar(-1, "probe.gradient_error", whole)
    for fqn, error in (own or {}).items():
        recording.scalar(-1, "probe.parameter_gradient_error", error, fqn)
    detail: dict[str, Json] = {"probe": "gradient-check", "kinks": 1}
    detail |= {"cuts": [*cuts], "functions": [*functions]}
    recording.event(-1, EventKind.OBSERVED, "net", **detail)
    recording.measured(-1)
    return recording


def test_fires_at_the_parameter_that_is_off_most():
    own = {"a.weight": 1e-8, "b.weight": 0.0099, "c.weight": 0.002}
    (finding,) = probed(0.004, own, functions=("Mine",)).findings("G005")
    assert (finding.severity, finding.evidence.site.fqn) == (Severity.ERROR, "b.weight")
    assert finding.evidence.layers == ("b", "c")
    assert "`b.weight`, `c.weight` is off by up to 0.99 %" in finding.evidence.message
    assert "`Mine`" in finding.evidence.cause


def test_fires_for_the_whole_where_no_parameter_was_compared():
    (finding,) = probed(0.01).findings("G005")
    assert finding.evidence.site.fqn == ""


def test_fires_as_a_warning_where_it_is_doubtful():
    (finding,) = probed(5e-4).findings("G005")
    assert finding.severity is Severity.WARNING


def test_fires_as_information_where_a_gradient_is_stopped():
    (finding,) = probed(1.5, {"a.weight": 1.5}, cuts=("detach",)).findings("G005")
    assert finding.severity is Severity.INFO
    assert "`detach`" in finding.evidence.cause


@pytest.mark.parametrize("error", [0.0, 3e-9, 9e-5])
def test_silent_where_both_agree(error: float):
    assert probed(error, {"a.weight": error}).findings("G005") == ()


def test_silent_where_a_user_allows_more():
    assert probed(5e-4).findings("G005", doubtful=1e-3) == ()
