"""N019: running statistics of the last batch or two."""

from __future__ import annotations

import math

import pytest

from tests.rules.recording import Recording, batchnorm_net


def run_of(momentum: float | None, batch: int, *, in_eval: bool = True, training: int = 1):
    recording = Recording(batchnorm_net("bn", momentum=momentum))
    for step in range(12):
        recording.scalar(step, "loss", 1.0)
        recording.scalar(step, "batch.size", batch)
        recording.scalar(step, "norm.training", training, "bn")
        recording.scalar(step, "norm.updates", training, "bn")
        recording.measured(step)
    if in_eval:
        recording.evaluated(11)
    recording.ended(12)
    return recording


def test_fires_on_the_momentum_of_another_framework():
    (finding,) = run_of(0.99, 16).findings("N019")
    assert finding.evidence.site == ("net", "bn")
    expected = math.sqrt(1.5 / 16 * 0.99 / 1.01)
    assert math.isclose(finding.evidence.numbers["noise"], expected)
    assert "off by 0.30 standard deviations by chance alone" in finding.evidence.message
    assert finding.evidence.fix == "momentum=0.01"


@pytest.mark.parametrize(("momentum", "batch"), [(0.5, 4), (0.9, 128), (None, 4), (0.1, 2)])
def test_silent_on_a_long_memory_or_a_large_batch(momentum: float | None, batch: int):
    assert run_of(momentum, batch).findings("N019") == ()


def test_silent_where_the_statistics_are_not_used_or_not_updated():
    assert run_of(0.99, 16, in_eval=False).findings("N019") == ()
    assert run_of(0.99, 16, training=0).findings("N019") == ()
