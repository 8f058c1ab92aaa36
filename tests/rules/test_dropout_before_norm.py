"""E009: dropout before BatchNorm."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.rules.recording import Recording, batchnorm_net
from traindx.facts import Json, ModuleFacts
from traindx.records import Point, Record, Site, TensorStats


def run_of(
    p: float = 0.6,
    *,
    order: int = 0,
    mean: float = 0.4,
    between: ModuleFacts | None = None,
    in_eval: bool = True,
) -> Recording:
    """A dropout layer whose input has mean square 0.5, called before or behind a BatchNorm."""
    options: dict[str, Json] = {"p": p}
    net = batchnorm_net("bn")
    drop = ModuleFacts("drop", "Dropout", order, 1, options)
    modules = [replace(m, order=None if m.order is None else 2 * m.order) for m in net.modules]
    extra = [between] if between else []
    recording = Recording(replace(net, modules=(*modules, drop, *extra)))
    square = 0.5 / (1 - p)
    for step in range(12):
        recording.scalar(step, "loss", 1.0)
        stats = TensorStats(100, mean, 100 * (square - mean * mean), -1.0, 1.0)
        recording.items.append(Record(step, Site("net", "drop"), Point.OUTPUT, stats))
        recording.scalar(step, "norm.training", 1, "bn")
        recording.scalar(step, "norm.updates", 1, "bn")
        recording.measured(step)
    if in_eval:
        recording.evaluated(11)
    recording.ended(12)
    return recording


def test_fires_where_batchnorm_averages_raised_variances():
    (finding,) = run_of().findings("E009")
    ratio = (0.5 / 0.4 - 0.16) / (0.5 - 0.16)
    assert finding.evidence.site == ("net", "drop")
    assert math.isclose(finding.evidence.numbers["ratio"], ratio)
    assert "3.21 times as large in training" in finding.evidence.message


def test_silent_at_a_moderate_rate():
    assert run_of(0.3).findings("E009") == ()


def test_silent_behind_the_norm_or_with_another_norm_between():
    assert run_of(order=9).findings("E009") == ()
    layer = ModuleFacts("ln", "LayerNorm", 1, 1, {"eps": 1e-5, "normalized_shape": [10]})
    assert run_of(between=layer).findings("E009") == ()


def test_silent_in_a_model_that_is_never_evaluated():
    assert run_of(in_eval=False).findings("E009") == ()
