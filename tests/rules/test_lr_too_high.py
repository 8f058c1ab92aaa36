"""O001 lr-too-high: the first steps, the loss, and what explains large ratios otherwise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.rules.recording import Recording, chain
from traindx.facts import Json, OptimizerFacts
from traindx.findings import Severity
from traindx.records import Description

STEADY = [2.3] * 24
DIVERGING = [2.3, 5.0, 9.0, 20.0, *[30.0] * 20]
LEARNING = [2.3, 5.0, 1.5, 1.0, *[0.3] * 20]


def optimizer(kind: str = "SGD", groups: int = 1) -> OptimizerFacts:
    group: dict[str, Json] = {"lr": 0.5}
    return OptimizerFacts("SGD", kind, (group,) * groups, 6)


def training(
    ratios: Sequence[float],
    losses: Sequence[float] = STEADY,
    *,
    kind: str = "SGD",
    rms: float = 0.3,
    lrs: Sequence[float] = (0.5,),
    depth: int = 3,
    groups: int = 1,
    grads: Sequence[float] = (),
) -> Recording:
    """Three layers of 10 x 10, each moved by `ratios`, the last of which stays."""
    recording = Recording(chain(depth), optimizer(kind, groups))
    for step, loss in enumerate(losses):
        ratio = ratios[min(step, len(ratios) - 1)]
        recording.scalar(step, "loss", loss)
        recording.scalar(step, "lr", lrs[min(step, len(lrs) - 1)], fqn="SGD", model="")
        for layer in range(depth):
            recording.scalar(step, "param.rms", rms, f"{layer}.weight")
            recording.scalar(step, "update.ratio", ratio, f"{layer}.weight")
            if grads:
                recording.grad(step, f"{layer}.weight", grads[layer])
        recording.measured(step)
    return recording


def test_fires_as_an_error_for_steps_longer_than_the_weights():
    (finding,) = training([4.0, 2.0, 0.02]).findings("O001")
    assert (finding.severity, finding.active) == (Severity.ERROR, True)
    assert finding.evidence.site == ("net", "")
    assert finding.evidence.step == 2
    assert finding.evidence.numbers["proposed_lr"] == 0.001
    assert 'group["lr"] = 0.001  # in place of 0.5' in finding.evidence.fix


def test_fires_as_a_warning_for_steps_of_half_the_weights():
    (finding,) = training([0.5, 0.2, 0.01]).findings("O001")
    assert (finding.severity, finding.active) == (Severity.WARNING, True)


def test_fires_as_an_error_for_shorter_steps_where_the_loss_diverges():
    (finding,) = training([0.15], DIVERGING).findings("O001")
    assert finding.severity is Severity.ERROR
    assert finding.thresholds["diverging"] == 0.1
    assert "threshold 0.1" in finding.evidence.message


def test_fires_before_the_third_step_where_the_loss_is_no_longer_finite():
    (finding,) = training([50.0, math.nan], [2.3, math.nan]).findings("O001")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.step == 1


def test_says_nothing_of_a_loss_that_has_no_first_value_to_compare_with():
    (finding,) = training([4.0, 2.0, 0.02], [-1.0] * 24).findings("O001")
    assert "nan" not in finding.evidence.message
    assert finding.evidence.numbers.keys() == {"ratio", "lr", "proposed_lr", "weight_growth"}


def test_fires_for_adam_and_says_what_adam_does():
    (finding,) = training([3.0, 0.5], kind="AdamW").findings("O001")
    assert "AdamW moves every entry of a weight by about lr" in finding.evidence.cause


def test_fires_with_a_factor_where_groups_have_rates_of_their_own():
    (finding,) = training([2.0], groups=2).findings("O001")
    assert 'group["lr"] *= 5e-03' in finding.evidence.fix


@pytest.mark.parametrize("ratio", [0.001, 0.05, 0.2, 0.29])
def test_silent_for_ordinary_steps(ratio: float):
    assert not training([ratio]).findings("O001")


def test_silent_for_steps_that_become_long_later():
    assert not training([0.01, 0.01, 0.01, 5.0]).findings("O001")


def test_silent_where_the_loss_rises_and_comes_back():
    assert not training([0.15], [2.3, 5.0, 3.0, 2.0, *[1.8] * 20]).findings("O001")


def test_silent_where_the_loss_diverges_at_small_steps():
    assert not training([0.02], DIVERGING).findings("O001")


def test_silent_where_the_model_has_learned_all_the_same():
    assert not training([0.6], LEARNING).findings("O001")


@pytest.mark.parametrize("rms", [0.0, 1e-4])
def test_silent_for_weights_that_start_as_good_as_at_zero(rms: float):
    assert not training([math.inf if rms == 0 else 8.0], rms=rms).findings("O001")


def test_silent_for_a_line_search():
    assert not training([2.0], kind="LBFGS").findings("O001")


def test_silent_for_steps_of_half_the_weights_that_an_optimizer_shortens_by_itself():
    assert not training([0.5, 0.2, 0.01], kind="Adagrad").findings("O001")
    (finding,) = training([0.5], DIVERGING, kind="Adagrad").findings("O001")
    assert finding.severity is Severity.ERROR
    assert training([4.0, 2.0, 0.02], kind="Adagrad").findings("O001")


def test_silent_where_gradients_explode_with_the_depth_before_any_update():
    grads = [300.0, 60.0, 12.0, 3.0, 0.6]
    assert not training([2.0], depth=5, grads=grads).findings("O001")
    assert training([2.0], depth=5, grads=grads, kind="Adam").findings("O001")


def test_silent_in_a_warmup():
    verdict = training([0.6], lrs=[0.1, 0.2, 0.3, 0.4, 0.5]).verdict("O001")
    assert not verdict.findings
    (silenced,) = verdict.silenced
    assert silenced.reason.startswith("warmup")


def test_silent_for_frozen_weights_and_biases():
    recording = training([2.0])
    facts = chain(3)
    frozen = replace(facts, params=tuple(replace(p, trainable=False) for p in facts.params))
    recording.items[0] = Description(0, frozen)
    assert not recording.findings("O001")


def test_silent_for_a_model_first_trained_late():
    recording = Recording(chain(2), optimizer())
    for step in (40, 41):
        recording.scalar(step, "loss", 2.0)
        recording.scalar(step, "lr", 0.5, fqn="SGD", model="")
        for layer in range(2):
            recording.scalar(step, "param.rms", 0.3, f"{layer}.weight")
            recording.scalar(step, "update.ratio", 2.0, f"{layer}.weight")
        recording.measured(step)
    assert not recording.findings("O001")
