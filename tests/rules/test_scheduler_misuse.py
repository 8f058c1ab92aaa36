"""O005: a learning rate that is gone too soon."""

import math
from collections.abc import Callable, Sequence

import pytest

from tests.rules.recording import Recording, chain, weight
from traindx.facts import ModelFacts, ModuleFacts, OptimizerFacts, ParamFacts
from traindx.findings import Severity
from traindx.records import EventKind


def run_of(rate: Callable[[int], float], steps: int = 300, *, loss: float = 1.0) -> Recording:
    recording = Recording(chain(2))
    for step in range(steps):
        recording.scalar(step, "lr", rate(step), "SGD", model="")
        recording.scalar(step, "loss", loss if step else 1.0)
        recording.measured(step)
    recording.ended(steps)
    return recording


def test_fires_when_an_exponential_decay_is_stepped_at_each_batch():
    (finding,) = run_of(lambda step: 0.1 * 0.8**step).findings("O005")
    assert finding.severity is Severity.WARNING
    assert finding.active
    assert finding.evidence.site == ("", "SGD")
    assert finding.evidence.numbers["steps_before"] == 21
    assert finding.evidence.numbers["steps_after"] == 279
    assert finding.first_step < 80
    assert finding.evidence.message.startswith(
        "the learning rate of SGD fell from 0.1 to less than 1.00% of that in 21 steps, and has "
        "been there for 279 steps since"
    )


def test_fires_when_a_linear_decay_ends_after_a_fifth_of_the_steps():
    assert len(run_of(lambda step: max(0.0, 1 - step / 60)).findings("O005")) == 1


def test_the_fall_is_taken_to_lie_between_two_measured_steps():
    recording = Recording(chain(2))
    for step in (0, 1, 2, 10, 50, 70, 150, 200):
        recording.scalar(step, "lr", max(0.0, 1 - step / 60), "SGD", model="")
        recording.measured(step)
    (finding,) = recording.findings("O005")
    assert finding.evidence.numbers["steps_before"] == 60
    assert finding.evidence.numbers["steps_after"] == 141


def cosine(step: int, period: int = 300) -> float:
    return (1 + math.cos(math.pi * (step % period) / period)) / 2


@pytest.mark.parametrize(
    "rate",
    [
        cosine,
        lambda step: cosine(step, 50),
        lambda step: min(step / 90, cosine(max(step - 90, 0), 210)),
        lambda step: (1 - step / 300) ** 2,
        lambda step: 1e-4 ** (step / 300),
        lambda step: 0.1 ** (step // 100),
        lambda step: 0.0,
        lambda step: 1.0,
    ],
    ids=["cosine", "restarts", "one-cycle", "square", "exponential", "staircase", "zero", "fixed"],
)
def test_silent_on_schedules_that_use_their_steps(rate):
    assert run_of(rate).findings("O005") == ()


def test_silent_after_a_search_for_the_rate():
    assert run_of(lambda step: 1e-5 * 2**step if step < 20 else 1e-3).findings("O005") == ()


def test_silent_when_a_second_phase_is_given_a_hundredth_and_less():
    assert run_of(lambda step: 1e-2 if step < 50 else 1e-5).findings("O005") == ()


def test_silent_when_the_loss_has_come_down_all_the_same():
    assert run_of(lambda step: 0.8**step, loss=0.01).findings("O005") == ()


def test_clears_once_the_rate_rises_again():
    (finding,) = run_of(lambda step: 0.8 ** (step % 200)).findings("O005")
    assert not finding.active


SHARES = [0.52, 0.6, 0.74, 0.81, 0.9, 0.92]
LOSSES = [math.sqrt(share) for share in (0.262, 0.2, 0.153, 0.123, 0.097, 0.084)]


def told(numbers: Sequence[float], *, more_is_better: bool, cut: bool = True) -> Recording:
    """A rate that is cut after three numbers, each after ten steps, while the loss falls."""
    recording = Recording(chain(2))
    for step in range(60):
        recording.scalar(step, "lr", 0.1 if step < 30 or not cut else 0.01, "SGD", model="")
        recording.scalar(step, "loss", 1 / (1 + step / 10))
        if step % 10 == 9:
            recording.scalar(step, "plateau.metric", numbers[step // 10], "SGD", model="")
            flag = float(more_is_better)
            recording.scalar(step, "plateau.more_is_better", flag, "SGD", model="")
        recording.measured(step)
    return recording


def test_fires_when_an_accuracy_is_to_become_small():
    (finding,) = told(SHARES, more_is_better=False).findings("O005")
    assert finding.evidence.site == ("", "SGD")
    assert finding.first_step == 39
    assert "takes the smallest number for the best" in finding.evidence.message
    assert finding.evidence.fix == 'ReduceLROnPlateau(optimizer, mode="max")'


def test_fires_when_a_loss_is_to_become_large():
    (finding,) = told(LOSSES, more_is_better=True).findings("O005")
    assert finding.evidence.fix == 'ReduceLROnPlateau(optimizer, mode="min")'


@pytest.mark.parametrize(
    ("numbers", "more_is_better", "cut"),
    [
        (SHARES, True, True),
        (LOSSES, False, True),
        (LOSSES[::-1], False, True),
        (SHARES[::-1], True, True),
        ([0.52, 0.5, *SHARES[2:]], False, True),
        (SHARES, False, False),
    ],
    ids=["right", "loss", "overfits", "worse", "error-rate", "not-cut"],
)
def test_silent_when_a_plateau_is_one(numbers: list[float], more_is_better: bool, cut: bool):
    recording = told(numbers, more_is_better=more_is_better, cut=cut)
    assert recording.findings("O005") == ()


def transformer(depth: int, *, first: bool = False) -> ModelFacts:
    """Blocks of attention and a linear layer, each with a normalization before or after."""
    order = ["norm", "attn", "ff"] if first else ["attn", "ff", "norm"]
    kinds = {"norm": "LayerNorm", "attn": "MultiheadAttention", "ff": "Linear"}
    modules = [ModuleFacts("", "Model", 0, 1)]
    params: list[ParamFacts] = []
    for i in range(depth):
        modules.append(ModuleFacts(f"blocks.{i}", "Block", 10 * i + 1, 1))
        modules += [
            ModuleFacts(f"blocks.{i}.{part}", kinds[part], 10 * i + 2 + place, 1)
            for place, part in enumerate(order)
        ]
        params.append(weight(f"blocks.{i}.ff"))
    return ModelFacts("net", "Model", tuple(modules), tuple(params))


def post_norm(
    *,
    depth: int = 6,
    first: bool = False,
    kind: str = "Adam",
    ratio: float = 0.08,
    rate: Callable[[int], float] = lambda step: 1e-3,
    loss: Callable[[int], float] = lambda step: 2.5,
) -> Recording:
    facts = OptimizerFacts("SGD", kind, ({"lr": 1e-3},), depth)
    recording = Recording(transformer(depth, first=first), facts)
    for step in range(100):
        recording.scalar(step, "lr", rate(step), "SGD", model="")
        recording.scalar(step, "loss", loss(step))
        for i in range(depth):
            recording.scalar(step, "update.ratio", ratio, f"blocks.{i}.ff.weight")
        recording.measured(step)
    return recording


def test_fires_when_blocks_that_normalize_last_begin_at_the_full_rate():
    (finding,) = post_norm().findings("O005")
    assert finding.severity is Severity.WARNING
    assert finding.first_step == 83  # by then it is asked after every fourth step
    assert finding.evidence.layers == tuple(f"blocks.{i}" for i in range(6))
    assert "moves the weights of 6 blocks that normalize after their sum by 8.0%" in (
        finding.evidence.message
    )


@pytest.mark.parametrize(
    "recording",
    [
        post_norm(depth=2),
        post_norm(first=True),
        post_norm(kind="SGD"),
        post_norm(ratio=1e-3),
        post_norm(rate=lambda step: 1e-5 * (step + 1)),
        post_norm(loss=lambda step: 2.5 * math.exp(-step / 60)),
    ],
    ids=["shallow", "pre-norm", "sgd", "low-rate", "warmup", "learns"],
)
def test_silent_when_a_warmup_is_not_missed(recording: Recording):
    assert recording.findings("O005") == ()


def planned(
    rate: Callable[[int], float], steps: int = 200, loaded: bool = False, **settings: float
) -> Recording:
    """A training whose optimizer a scheduler has left these settings."""
    recording = Recording(chain(2), OptimizerFacts("SGD", "SGD", ({"lr": 0.0, **settings},), 2))
    if loaded:
        recording.event(0, EventKind.LOADED, "net", at=0, parameters=2)
    for step in range(steps):
        recording.scalar(step, "lr", rate(step), "SGD", model="")
        recording.measured(step)
    recording.ended(steps)
    recording.measured(steps)
    return recording


@pytest.mark.parametrize(
    ("rate", "group"),
    [
        (lambda step: 1e-3, {"initial_lr": 0.1}),
        (lambda step: 1e-3 * (1 + step // 50), {"initial_lr": 0.1}),
        (lambda step: 0.008, {"initial_lr": 0.008, "max_lr": 0.2}),
    ],
    ids=["never-stepped", "by-the-epoch", "one-cycle"],
)
def test_fires_when_a_warmup_never_ends(rate: Callable[[int], float], group: dict[str, float]):
    (finding,) = planned(rate, 200, False, **group).findings("O005")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("", "SGD")
    assert "the warmup never ends" in finding.evidence.cause
    assert f"it was to be {max(group.values()):.3g}" in (finding.evidence.message)


def test_fires_when_the_factor_is_itself_a_rate():
    (finding,) = planned(lambda step: 1e-6 * 0.9 ** (step // 50), initial_lr=1e-3).findings("O005")
    assert "`LambdaLR` was given returns a rate" in finding.evidence.cause


@pytest.mark.parametrize(
    "recording",
    [
        planned(lambda step: 0.04, initial_lr=0.1, loaded=True),
        planned(lambda step: 1e-3, initial_lr=1.0),
        planned(lambda step: 0.05, initial_lr=0.1),
        planned(lambda step: 1e-4 * step, initial_lr=0.1),
        planned(lambda step: 1e-3, steps=80, initial_lr=0.1),
        planned(lambda step: 1e-3),
        planned(lambda step: 0.04 if step < 100 else 0.03, initial_lr=0.1),
    ],
    ids=["resumed", "noam", "half", "by-the-batch", "short", "no-scheduler", "falls"],
)
def test_silent_where_a_rate_is_as_it_was_meant(recording: Recording):
    assert recording.findings("O005") == ()
