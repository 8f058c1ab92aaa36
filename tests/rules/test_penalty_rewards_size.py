"""L014 penalty-rewards-size: a penalty of the wrong sign."""

from __future__ import annotations

from tests.rules.recording import Recording


def probed(change: float | None) -> Recording:
    """A preflight in which the loss of the same output changed so."""
    recording = Recording()
    if change is not None:
        recording.scalar(-1, "probe.penalty_slope", change)
    recording.measured(-1)
    return recording


def test_fires_where_the_loss_falls_with_larger_parameters():
    (finding,) = probed(-0.3).findings("L014")
    assert "lowers the loss by 0.3" in finding.evidence.message


def test_silent_where_it_rises():
    assert probed(0.3).findings("L014") == ()


def test_silent_without_a_penalty():
    assert probed(None).findings("L014") == ()
