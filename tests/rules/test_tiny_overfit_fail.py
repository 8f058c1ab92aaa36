"""L004 tiny-overfit-fail: a few samples that cannot be learned."""

from __future__ import annotations

import math

import pytest

from tests.rules.recording import Recording
from traindx.findings import Severity
from traindx.records import EventKind


def probed(fraction: float) -> Recording:
    """A preflight after which so much of the loss was left."""
    recording = Recording()
    recording.scalar(-1, "probe.overfit_fraction", fraction)
    recording.scalar(-1, "probe.overfit_steps", 450)
    detail = {"probe": "overfit-tiny-subset", "samples": 20, "guess": 2.3}
    recording.event(-1, EventKind.OBSERVED, "net", **detail)
    recording.measured(-1)
    return recording


@pytest.mark.parametrize(
    ("fraction", "severity"),
    [(0.6, Severity.ERROR), (math.inf, Severity.ERROR), (0.1, Severity.WARNING)],
)
def test_fires_for_what_is_left(fraction: float, severity: Severity):
    (finding,) = probed(fraction).findings("L004")
    assert finding.severity is severity
    assert "net cannot learn 20 samples by heart" in finding.evidence.message


def test_silent_where_nothing_is_left():
    assert probed(0.018).findings("L004") == ()


def test_silent_just_under_the_threshold():
    assert probed(0.0499).findings("L004") == ()
