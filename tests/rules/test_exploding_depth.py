"""G002 exploding-depth: growth towards the first layer that does harm."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from tests.rules.recording import Recording, chain
from traindx.findings import Severity
from traindx.records import Point, Record, Site, TensorStats

EXPLODING = [800.0, 200.0, 50.0, 12.0, 3.0]
FLAT = [3.0] * 5


def training(
    grads: Sequence[Sequence[float]] = (EXPLODING,),
    *,
    updates: Sequence[float] = (0.5,),
    losses: Sequence[float] = (1.0,) * 8,
    outputs: Sequence[float] = (),
    steps: Sequence[int] = range(8),
) -> Recording:
    """Five layers; the last of `grads`, `updates` and `losses` stay."""
    recording = Recording(chain(5))
    for i, step in enumerate(steps):
        loss = losses[min(i, len(losses) - 1)]
        recording.scalar(step, "loss", loss)
        for layer, rms in enumerate(grads[min(i, len(grads) - 1)]):
            recording.grad(step, f"{layer}.weight", rms)
            recording.scalar(step, "param.rms", 1.0, f"{layer}.weight")
            update = updates[min(i, len(updates) - 1)] if layer == 0 else 0.001
            recording.scalar(step, "update.ratio", update, f"{layer}.weight")
        for layer, rms in enumerate(outputs):
            stats = TensorStats(100, 0.0, 100 * rms * rms, -rms, rms)
            recording.items.append(Record(step, Site("net", str(layer)), Point.OUTPUT_GRAD, stats))
        recording.measured(step)
    return recording


def test_fires_as_a_warning_for_steps_of_half_the_first_weight():
    (finding,) = training().findings("G002")
    assert (finding.severity, finding.active) == (Severity.WARNING, True)
    assert finding.evidence.site == ("net", "0")
    assert finding.evidence.layers == tuple(map(str, range(len(EXPLODING))))
    assert finding.evidence.profiles == ("grad.rms",)
    assert finding.evidence.numbers["ratio"] == pytest.approx(800 / 3)
    assert "changed `0.weight` by 0.5 of its size" in finding.evidence.message


def test_fires_as_an_error_for_steps_longer_than_the_first_weight():
    (finding,) = training(updates=[3.0]).findings("G002")
    assert finding.severity is Severity.ERROR


def test_fires_for_gradients_of_outputs_where_those_of_weights_are_all_of_a_size():
    (finding,) = training([FLAT], outputs=EXPLODING).findings("G002")
    assert "8e+02 at the output of `0`" in finding.evidence.message
    assert finding.evidence.profiles == ("output_grad.rms",)


def test_fires_by_the_first_steps_where_the_rest_is_not_finite():
    nan = [math.nan] * 5
    recording = training(
        [EXPLODING, EXPLODING, nan],
        updates=[0.4, 7.0, math.nan],
        losses=[1.0, 50.0, math.nan],
        steps=[*range(10), 20, 40, 80],
    )
    (finding,) = recording.findings("G002")
    assert (finding.severity, finding.active) == (Severity.ERROR, True)
    assert finding.evidence.step == 0
    assert "no longer finite" in finding.evidence.message


def test_fires_for_a_gradient_that_keeps_growing_while_the_loss_rises():
    grown = [[scale * value for value in EXPLODING] for scale in (1, 1, 2, 4, 8, 20)]
    losses = [1.0, 1.1, 1.3, 1.5, 2.0, 4.0]
    (finding,) = training(grown, updates=[0.05], losses=losses, steps=range(6)).findings("G002")
    assert "20 times what it was" in finding.evidence.message


def test_says_whether_it_exploded_from_the_start():
    (initial,) = training().findings("G002")
    (grown,) = training([FLAT, EXPLODING]).findings("G002")
    assert "weights start too large" in initial.evidence.cause
    assert "have grown in training" in grown.evidence.cause


def test_silent_where_it_does_no_harm():
    assert not training(updates=[0.02]).findings("G002")


def test_silent_for_a_ratio_as_convolutional_networks_have():
    assert not training([[50.0, 20.0, 8.0, 3.0, 1.0]]).findings("G002")


def test_silent_for_a_jump_at_a_single_layer():
    assert not training([[800.0, 4.0, 4.0, 3.5, 3.0]]).findings("G002")


def test_silent_where_the_model_has_learned_all_the_same():
    found = training(losses=[1.0, 0.2], steps=range(30)).findings("G002")
    assert not any(finding.active for finding in found)


def test_silent_for_a_nan_from_elsewhere():
    recording = training(
        [EXPLODING, [math.nan] * 5], updates=[0.01, math.nan], losses=[1.0, math.nan]
    )
    assert not recording.findings("G002")


def test_silent_where_nothing_was_ever_finite():
    verdict = training([[math.nan] * 5], losses=[math.nan]).verdict("G002")
    assert not verdict.findings
    assert verdict.not_evaluated[0].reason == "the gradients of net are not finite"
