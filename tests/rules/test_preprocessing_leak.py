"""L015 preprocessing-leak: statistics of all data."""

from __future__ import annotations

from tests.rules.before_training import Probing


def seen(times: float | None) -> Probing:
    run = Probing().number("probe.overlap", 0.0, "val").seen("data-splits", "val")
    return run if times is None else run.number("probe.joint_scaling", times, "val")


def test_fires_where_both_together_are_standard():
    (finding,) = seen(4000).findings("L015")
    assert "`val` together have mean 0 and deviation 1" in finding.evidence.message
    assert finding.evidence.numbers == {"times": 4000}


def test_silent_where_training_alone_is_as_near():
    assert not seen(1.5).findings("L015")


def test_silent_where_both_together_are_not_standard():
    assert not seen(0.0).findings("L015")


def test_silent_where_not_all_was_read():
    assert seen(None).why_not("L015") == "needs preflight"
