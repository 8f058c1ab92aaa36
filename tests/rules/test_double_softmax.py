"""L002 double-softmax: probabilities where scores belong."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.rules.recording import Recording, chain
from traindx.facts import LossFacts, TensorFacts
from traindx.findings import Severity

PROBABILITIES = TensorFacts((64, 10), "float32", "SoftmaxBackward0", 0.01, 0.9, False, True)
LABELS = TensorFacts((64,), "int64", "", 0.0, 9.0, True, False)
LOSS = LossFacts("net", "NllLossBackward0", "NllLossBackward0", PROBABILITIES, LABELS)
FLOOR = 1.4612


def training(facts: LossFacts, *losses: float, later: LossFacts | None = None) -> Recording:
    """A run with these losses, one a step; `later` are the facts of its second batch."""
    recording = Recording(chain(2), facts)
    for step, loss in enumerate(losses):
        if step == 1 and later:
            recording.described(step, later)
        recording.scalar(step, "loss", loss)
        recording.measured(step)
    return recording


def predicted(**changes: object) -> LossFacts:
    return replace(LOSS, prediction=replace(PROBABILITIES, **changes))


def test_fires_for_a_softmax_before_cross_entropy():
    (finding,) = training(LOSS, 2.3, 2.2, 1.6).findings("L002")
    assert (finding.severity, finding.evidence.site) == (Severity.ERROR, ("net", ""))
    assert finding.evidence.numbers["floor"] == pytest.approx(FLOOR, abs=1e-4)
    assert finding.evidence.numbers["lowest_loss"] == 1.6
    assert "ln(1 + (10 - 1)/e) = 1.461, and the lowest so far is 1.6" in finding.evidence.message


@pytest.mark.parametrize(
    ("shape", "floor"),
    [((8, 2), 0.3133), ((8, 3, 20, 20), 0.5514), ((8, 100), 3.6222), ((8, 1000, 7), 5.9095)],
)
def test_fires_with_the_floor_of_the_classes_on_axis_1(shape: tuple[int, ...], floor: float):
    (finding,) = training(predicted(shape=shape), 7.0, 6.9).findings("L002")
    assert finding.evidence.numbers["floor"] == pytest.approx(floor, abs=1e-4)


def test_fires_for_a_softmax_though_an_accumulated_loss_is_below_the_floor():
    assert training(LOSS, 0.6, 0.5).findings("L002")


def test_fires_for_probabilities_without_logarithm_and_says_so():
    (finding,) = training(LOSS, -0.1, -0.4, -0.6).findings("L002")
    assert "expects their logarithms" in finding.evidence.message
    assert "log_softmax" in finding.evidence.fix


def test_fires_for_probabilities_normalized_by_hand_whose_loss_stays_above_the_floor():
    by_hand = predicted(operation="DivBackward0")
    (finding,) = training(by_hand, 2.3, 1.9, 1.47).findings("L002")
    assert "on two batches" in finding.evidence.message


def test_silent_for_rows_that_sum_to_one_in_one_batch_only():
    odd = predicted(operation="DivBackward0")
    later = predicted(operation="DivBackward0", rows_sum_to_one=False)
    assert not training(odd, 2.3, 2.2, 2.1, later=later).findings("L002")


def test_silent_for_rows_that_sum_to_one_by_chance_where_the_loss_falls_below_the_floor():
    odd = predicted(operation="DivBackward0")
    assert not any(f.active for f in training(odd, 2.3, 2.2, 1.2, 1.1).findings("L002"))


@pytest.mark.parametrize(
    "facts",
    [
        predicted(operation="AddmmBackward0", rows_sum_to_one=False, min=-3.0),
        predicted(operation="LogSoftmaxBackward0", rows_sum_to_one=False, min=-5.0, max=-0.1),
        predicted(operation="SigmoidBackward0", rows_sum_to_one=False),
        predicted(shape=(64, 1)),
        predicted(operation="ViewBackward0", min=math.nan, max=math.nan, rows_sum_to_one=False),
        replace(LOSS, prediction=None),
    ],
    ids=["scores", "log-softmax", "sigmoid", "one class", "unknown values", "unknown"],
)
def test_silent_for_what_is_no_distribution_over_classes(facts: LossFacts):
    assert not training(facts, 2.3, 2.2, 2.1).findings("L002")


def test_silent_for_other_losses():
    facts = replace(LOSS, loss="MseLossBackward0")
    verdict = training(facts, 2.3, 2.2).verdict("L002")
    assert not verdict.findings
    (entry,) = verdict.not_evaluated
    assert entry.reason == "no cross-entropy or likelihood over classes was seen"
