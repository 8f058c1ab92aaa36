"""O002: a learning rate so low that the weights cannot get anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from traindx.facts import ModelFacts, OptimizerFacts
from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.order import optimizers_of
from traindx.rules.rule import rule
from traindx.run import Run, Series

_ENDS = 10
"""Losses at the start and at the end that are compared."""
_LEAST = 1e-9
_STEADY = 0.5
"""Share of its peak that the rate must have kept."""


@dataclass(frozen=True, slots=True)
class _Way:
    """How far the weights have come.

    Attributes:
        weights: Weights looked at.
        farthest: The greatest way of any: steps times mean update, in sizes of the weight.
        ratio: Its mean update ratio.
        steps: Steps since the first one measured.
        step: The last one measured.
    """

    weights: int
    farthest: float
    ratio: float
    steps: int
    step: int


@rule(
    "O002",
    severity=Severity.WARNING,
    reads=("update.ratio",),
    silent_in=("warmup", "pretrained"),
    explained_by=(
        "F001",
        "F003",
        "F005",
        "G001",
        "G003",
        "G009",
        "G010",
        "N010",
        "N011",
        "N012",
        "O004",
        "O005",
        "O016",
        "P001",
        "S002",
    ),
    lasting=True,
)
def lr_too_low(
    run: Run, *, way: float = 0.01, steps: float = 100, loss: float = 0.98
) -> Iterator[Evidence]:
    """The learning rate is so low that the weights stay next to where they started.

    ## Why it matters
    A rate with some zeros too many trains without any error and without any progress. The loss
    moves with the batches, which looks like a hard task.

    ## How it is measured
    Without training anew it can only be told where it is beyond doubt. Of each weight of two
    dimensions or more, the mean of its updates at the measured steps over its size, times the
    number of steps, is the farthest it can have come, were all updates in one direction. After at
    least `steps` steps no weight that has a gradient can have come farther than `way` of its size,
    while the mean of the last ten losses is above `loss` of the first ten. Whether a rate that is
    merely somewhat low would do better with ten times as much takes a trial.

    ## How to fix
    Take the usual one for the optimizer (1e-3 for Adam, 0.1 to 0.01 for SGD), or the one
    `traindx preflight` finds. The finding proposes a factor that brings the updates to a thousandth
    of the weights.

    ## False alarms
    A warmup, a rate that has come down from a higher one, weights that were trained before, and
    parameters that are frozen are left out. Weights without a gradient are none of its concern. A
    network that has nothing more to learn has a loss that has fallen before.

    ## References
    CS231n, "Neural Networks Part 3", on the ratio of updates to weights, about 1e-3. Smith,
    "Cyclical learning rates for training neural networks" (2017), on the range test.
    """
    for model in run.models.values():
        for optimizer in optimizers_of(run, model):
            # What costs little comes first: this is asked after every measured step.
            if not _is_steady(run, optimizer) or not _loss_left(run, model.name) > loss:
                continue
            found = _way(run, model, optimizer, way)
            if found is not None and found.steps >= steps and not found.farthest > way:
                yield _evidence(model, optimizer, found, way)


def _way(run: Run, model: ModelFacts, optimizer: OptimizerFacts, most: float) -> _Way | None:
    """How far the weights can have come; None if one has come farther than `most`."""
    ways: list[tuple[float, float, Series]] = []
    for param in model.params:
        site = Site(model.name, param.fqn)
        moved, grad = run.at("update.ratio", site), run.at("grad.rms", site)
        if len(param.shape) < 2 or optimizer.name not in param.optimizers or not moved or not grad:
            continue
        absent = run.at("grad.absent", site)
        if grad.last > 0 and not (absent and absent.last == 1):
            mean = float(moved.values.mean())
            ways.append((mean * (moved.step - moved.first_step + 1), mean, moved))
            if ways[-1][0] > most:
                return None
    if not ways:
        return None
    farthest, ratio, series = max(ways, key=lambda one: one[0])
    return _Way(len(ways), farthest, ratio, series.step - series.first_step + 1, series.step)


def _is_steady(run: Run, optimizer: OptimizerFacts) -> bool:
    """Whether the rate is what it was meant to be: not zero, not risen lately, not come down."""
    rate = run.at("lr", Site("", optimizer.name))
    if rate is None or not rate.last > 0:
        return False
    constant = rate.unchanged_since == rate.first_step  # the most common of all
    return constant or rate.last >= _STEADY * float(rate.values.max())


def _loss_left(run: Run, model: str) -> float:
    """The mean of the last losses over that of the first; 0 where there are too few."""
    losses = run.loss_of(model)
    if losses is None or len(losses) < 2 * _ENDS:
        return 0.0
    first = fmean(losses.head(_ENDS))
    return fmean(losses.tail(_ENDS)) / first if first > 0 else 0.0


def _evidence(
    model: ModelFacts, optimizer: OptimizerFacts, found: _Way, threshold: float
) -> Evidence:
    return Evidence(
        site=Site("", optimizer.name),
        step=found.step,
        message=say(
            "in {steps} steps of {optimizer} none of {weights} weights of {model} can have moved "
            "by more than {farthest:.1e} of its size (threshold {threshold:g}); a step changes "
            "them by {ratio:.1e}",
            steps=found.steps,
            optimizer=optimizer.name,
            weights=found.weights,
            model=model.name,
            farthest=found.farthest,
            threshold=threshold,
            ratio=found.ratio,
        ),
        numbers={"way": found.farthest, "ratio": found.ratio, "steps": found.steps},
        cause=say("The learning rate is too low by orders of magnitude."),
        fix=say(
            'for group in optimizer.param_groups: group["lr"] *= {factor:.0e}',
            factor=1e-3 / max(found.ratio, _LEAST),
        ),
        excluded=(
            say("a warmup, or a rate that has come down"),
            say("weights that were trained before"),
            say("a loss that has fallen"),
        ),
        series=("update.ratio", "lr", "loss"),
    )
