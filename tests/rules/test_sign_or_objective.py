"""O012: losses without a floor, maximized losses, punished rewards, generators that help."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.rules.recording import Recording, chain
from traindx.facts import LossFacts, OptimizerFacts, TensorFacts
from traindx.findings import Severity

Curve = Callable[[int], float]


def run_of(
    loss: Curve, *, steps: int = 200, factor: float | None = None, maximize: bool = False
) -> Recording:
    facts = OptimizerFacts("SGD", "SGD", ({"lr": 0.1, "maximize": maximize},), 2)
    recording = Recording(chain(2), facts)
    for step in range(steps):
        recording.scalar(step, "loss", loss(step))
        if factor is not None and step < 2:
            recording.scalar(step, "loss.factor", factor)
        recording.measured(step)
    return recording


def test_fires_when_the_loss_falls_ever_faster():
    (finding,) = run_of(lambda step: 7 - step**2.5 / 1000).findings("O012")
    assert (finding.severity, finding.active) == (Severity.ERROR, True)
    assert finding.evidence.site == ("net", "")
    assert finding.evidence.message.startswith("the loss has fallen from 7 to")


@pytest.mark.parametrize(
    "loss",
    [
        lambda step: 7 - 60 * (1 - math.exp(-step / 50)),
        lambda step: 7 - step,
        lambda step: 7 - 10 * math.log1p(step),
        lambda step: 7 - step**2.5 / 50_000,
        lambda step: 1 / (step + 1),
    ],
    ids=["density", "steady", "logarithm", "small", "usual"],
)
def test_silent_when_the_loss_has_a_floor_or_is_not_far_down(loss: Curve):
    assert run_of(loss).findings("O012") == ()


def test_fires_when_a_known_loss_is_negated():
    (finding,) = run_of(lambda step: -2.3 - step / 20, factor=-1.0).findings("O012")
    assert "stands in the loss with factor -1 and is maximized" in finding.evidence.message


def test_fires_when_the_optimizer_maximizes():
    recording = run_of(lambda step: 2.3 + step / 20, factor=1.0, maximize=True)
    assert len(recording.findings("O012")) == 1


@pytest.mark.parametrize(
    ("loss", "factor", "maximize"),
    [
        (lambda step: 2.3 + step / 20, 1.0, False),
        (lambda step: -2.3 - step / 20, 1.0, False),
        (lambda step: -2.3 - step / 200, -1.0, False),
        (lambda step: 2.3, 1.0, True),
    ],
    ids=["diverges", "another-term", "hardly", "stands-still"],
)
def test_silent_when_nothing_is_maximized(loss: Curve, factor: float, maximize: bool):
    assert run_of(loss, factor=factor, maximize=maximize).findings("O012") == ()


def punishing(**variables: float) -> Recording:
    recording = Recording(chain(2))
    for step in range(3):
        recording.scalar(step, "loss", 0.1)
        for name, correlation in variables.items():
            if step < 2:
                recording.scalar(step, "loss.rewarded", correlation, name)
        recording.measured(step)
    return recording


def test_fires_when_a_reward_is_punished():
    (finding,) = punishing(reward=0.97, advantage=1.0).findings("O012")
    assert finding.evidence.site == ("net", "")
    assert finding.first_step == 1
    assert "the greater `advantage` is" in finding.evidence.message
    assert finding.evidence.fix == "loss = -(advantage * log_prob).mean()"


@pytest.mark.parametrize(
    "variables",
    [{"reward": -1.0}, {"reward": 0.6}, {"reward": 1.0, "advantage": -1.0}],
    ids=["right", "weak", "contradicted"],
)
def test_silent_when_it_is_not(variables: dict[str, float]):
    assert punishing(**variables).findings("O012") == ()


def game(own: Curve, through: Curve, *, low: float = 0.0, loss: str = "BinaryCrossEntropyWithL"):
    """A generator and its judge, each with an optimizer of its own."""
    models = [replace(chain(2), name=name) for name in ("D", "G")]
    models = [
        replace(m, params=tuple(replace(p, optimizers=(f"of{m.name}",)) for p in m.params))
        for m in models
    ]
    target = TensorFacts((64, 1), "float32", "", low, 0.0, True, False)
    facts = LossFacts("D+G", loss, loss, replace(target, operation="Addmm"), target)
    recording = Recording(*models, facts)
    for step in range(100):
        recording.scalar(step, "loss", own(step), model="D")
        recording.scalar(step, "loss", through(step), model="D+G")
        recording.measured(step)
    return recording


def falls(step: int) -> float:
    return math.exp(-step / 10)


def test_fires_when_a_generator_helps_its_judge():
    (finding,) = game(falls, falls).findings("O012")
    assert finding.evidence.site == ("G", "")
    assert "which `D` judges by the label 0" in finding.evidence.message


@pytest.mark.parametrize(
    "recording",
    [
        game(falls, lambda step: 1 + step / 10),
        game(lambda step: 0.5, falls),
        game(falls, falls, low=-1.0),
        game(falls, falls, loss="NllLoss"),
        game(lambda step: 1 - step**2.0, lambda step: 1 - step**2.0),
    ],
    ids=["judge-wins", "generator-wins", "many-targets", "classes", "critic"],
)
def test_silent_when_they_play(recording: Recording):
    assert recording.findings("O012") == ()
