"""O001: the first steps move the weights too far."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from traindx.facts import ModelFacts, OptimizerFacts, ParamFacts
from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import Point, Site
from traindx.rules.gradients.depth import explodes, profiles_at
from traindx.rules.remembered import remembered
from traindx.rules.rule import rule
from traindx.run import Run, Series

FIRST = 3
"""Steps that show the learning rate: later ones look healthy, for the weights have grown."""
AIM = 1e-2
"""Ratio of update to weight that the proposed learning rate aims at."""
_LEAST_SCALE = 0.05
"""RMS of a weight times the root of its fan-in below which it starts as good as at zero."""
_LARGE_INPUT = 10.0
"""RMS from which on the size of the inputs is named as a part of the cause."""
_NORMALIZING = ("Ada", "RMS", "Lion", "Rprop", "Lamb", "LAMB", "Muon")
"""Parts of the names of optimizers that divide by the size of the gradient (`NAdam`, `RMSprop`)."""
_LINE_SEARCH = ("LBFGS",)
_SHORTENING = ("Adagrad",)
"""Optimizers that add up the squares of gradients: the first step is the longest, as the rate."""


@dataclass(frozen=True, slots=True)
class _Start:
    """How the first steps moved a model, and what its loss did.

    Attributes:
        model: The model.
        optimizer: The optimizer that holds most of the weights looked at.
        lr: Its learning rate at the first step.
        step: The last of the first steps that was measured.
        ratio: Median over the weights of the largest update over the weight.
        weights: How many weights that is.
        growth: Median over the weights of their RMS, as last measured early on, over the first.
        rise: Highest finite loss of the early steps over the first loss; NaN if unknown.
        recent: Mean of the last losses over the first; NaN if one is not finite.
        finite: Whether the loss still is.
        settled: Whether the early steps are over, in which a loss may rise and come back.
    """

    model: ModelFacts
    optimizer: OptimizerFacts
    lr: float
    step: int
    ratio: float
    weights: int
    growth: float
    rise: float
    recent: float
    finite: bool
    settled: bool

    def diverged(self, rise: float) -> bool:
        """Whether the loss rose early on and did not come back below where it started."""
        return self.rise > rise and not self.recent < 1

    @property
    def proposal(self) -> float:
        """A learning rate to try, to one digit."""
        return float(f"{self.lr * AIM / self.ratio:.0e}")

    @property
    def shortens(self) -> bool:
        """Whether the optimizer makes each step shorter than the one before, at any rate."""
        return self.optimizer.kind.startswith(_SHORTENING)


@rule(
    "O001",
    severity=Severity.WARNING,
    reads=("update.ratio",),
    silent_in=("warmup",),
    explained_by=(
        "G006",
        "G010",
        "L007",
        "L010",
        "L011",
        "L014",
        "L016",
        "N004",
        "N013",
        "N017",
        "O012",
        "O016",
    ),
    remedies=("lower-lr",),
    lasting=True,
)
def lr_too_high(
    run: Run,
    *,
    ratio: float = 0.3,
    certain: float = 1.0,
    diverging: float = 0.1,
    rise: float = 2.0,
    window: float = 20,
    loss: float = 0.25,
) -> Iterator[Evidence]:
    """The first steps change the weights by a large part of their own size.

    ## Why it matters
    A step that is as long as the weight itself does not improve a network, it replaces it: what the
    gradient said was true at the old weights only. The loss jumps, units die, or numbers overflow
    within a few steps. If the network survives, its weights have grown so much that later steps
    look modest beside them, and the run seems healthy while it learns slowly or not at all.

    ## How it is measured
    By `update.ratio`, the RMS of a weight's change in a step over its RMS before, at the first
    three steps only: of each weight of two dimensions or more the largest, and of these the median
    over the model. A healthy start has 0.001 to 0.1. A median above `ratio` is a warning, and an
    error above `certain` or if the loss diverges. A median above `diverging` is an error if the
    loss diverges: within the first `window` steps it is more than `rise` times the first one, and
    it does not come back below the first. A ratio under `certain` is judged once those steps are
    over, since a loss may rise and come back. Silent where the loss has come down to `loss` of the
    first one: the model has learned all the same. The ratio takes in what the optimizer does: for
    SGD it is lr times the gradient over the weight, for Adam about lr over the weight. One finding
    per model.

    ## How to fix
    Lower the learning rate. The finding computes one that would have brought the ratio to 0.01, the
    upper end of the usual range; try a third of it and three times it, too. If the inputs are
    large (pixels from 0 to 255), scale them first, since they multiply the gradient. A warmup of
    some hundred steps lets a rate stand that is only too high at the start.

    ## False alarms
    A weight that starts at zero, or as good as that (its RMS times the root of its fan-in is under
    0.05), has no size of its own to compare with, and is left out; so are biases and the scales of
    normalizations, frozen weights, and models first trained later in the run. Under a learning rate
    that rises from step to step the first steps are not at the full rate (`warmup`). Optimizers
    that search along the step (LBFGS) choose its length themselves, and Adagrad shortens it from
    the first one on, so that it is reported as an error only. Where gradients explode with the
    depth before the first update, it is not the learning rate: G002 tells that. A run that goes on
    from a checkpoint has small ratios.

    ## References
    CS231n, "Neural Networks Part 3", on the ratio of updates to weights (about 1e-3) and on the
    shape of the loss at too high a rate. Goyal et al., "Accurate, large minibatch SGD" (2017),
    section 2.2, on warmup. Lewkowycz et al., "The large learning rate phase of deep learning"
    (2020), on a loss that rises first and then comes down.
    """
    for model in run.models.values():
        start = _start(run, model, int(window), min(ratio, diverging))
        if start is None or start.recent <= loss:
            continue
        diverged = start.ratio >= diverging and start.diverged(rise)
        certainly = start.ratio > certain or not start.finite
        doubtful = start.settled and (diverged or not start.shortens)
        if (start.ratio > ratio or diverged) and (certainly or doubtful):
            is_error = diverged or certainly
            threshold = ratio if start.ratio > ratio else diverging
            severity = Severity.ERROR if is_error else Severity.WARNING
            yield _evidence(run, start, threshold, severity)


def _start(run: Run, model: ModelFacts, window: int, least: float) -> _Start | None:
    """The first steps of a model, None if they say nothing of the learning rate.

    Nor do those that changed its weights by `least` of their size or less.
    """
    losses = run.loss_of(model.name)
    finite = losses is None or math.isfinite(losses.last)
    if run.step < FIRST - 1 and finite and not run.ended:
        return None
    moved, ratio, step = _moved(run, model)
    if ratio <= least:
        return None
    optimizer = _optimizer(run, list(moved))
    rate = run.at("lr", Site("", optimizer.name)) if optimizer else None
    if optimizer is None or rate is None or not rate.first > 0 or _searches_line(optimizer):
        return None
    if not _normalizes(optimizer) and any(explodes(p) for p in profiles_at(run, model, 0)):
        return None
    growth = median(_growth(run, model, param, window) for param in moved)
    rise, recent = _course(losses, window)
    return _Start(
        model,
        optimizer,
        rate.first,
        step,
        ratio,
        len(moved),
        growth,
        rise,
        recent,
        finite,
        run.ended or run.step >= window,
    )


def _moved(run: Run, model: ModelFacts) -> tuple[dict[ParamFacts, float], float, int]:
    """The largest ratios of the first steps, their median, and the last step of those measured."""

    def find() -> tuple[dict[ParamFacts, float], float, int]:
        moved = {param: ratio for param in model.params if (ratio := _largest(run, model, param))}
        measured = run.series("update.ratio", model=model.name)
        ratio = median(moved.values()) if moved else 0.0
        return moved, ratio, max((series.step_before(FIRST) or 0 for series in measured), default=0)

    ratios, sizes = run.newest("update.ratio").steps, run.newest("param.rms").steps
    over = len(ratios) > 0 and int(ratios.max()) >= FIRST
    still = 0 if over else run.additions("update.ratio") + run.additions("param.rms")
    state = model, len(ratios), len(sizes), still
    return remembered(run, (_moved, model.name), state, find)


def _largest(run: Run, model: ModelFacts, param: ParamFacts) -> float | None:
    """The largest ratio of update to weight in the first steps, of a weight that has a size."""
    if not param.trainable or len(param.shape) < 2:
        return None
    site = Site(model.name, param.fqn)
    size, ratios = run.at("param.rms", site), run.at("update.ratio", site)
    if size is None or ratios is None:
        return None
    if not size.first * math.sqrt(math.prod(param.shape[1:])) >= _LEAST_SCALE:
        return None
    found = [r for r in ratios.before(FIRST, FIRST) if math.isfinite(r) and r > 0]
    return max(found, default=None)


def _growth(run: Run, model: ModelFacts, param: ParamFacts, window: int) -> float:
    size = run.at("param.rms", Site(model.name, param.fqn))
    assert size is not None
    finite = [rms for rms in size.before(window, window) if math.isfinite(rms)]
    return finite[-1] / finite[0] if finite else 1.0


def _optimizer(run: Run, params: list[ParamFacts]) -> OptimizerFacts | None:
    """The optimizer that holds most of some parameters."""
    held = [name for param in params for name in param.optimizers]
    return run.optimizers.get(max(held, key=held.count)) if held else None


def _searches_line(optimizer: OptimizerFacts) -> bool:
    """Whether it chooses the length of a step itself."""
    return optimizer.kind.startswith(_LINE_SEARCH)


def _normalizes(optimizer: OptimizerFacts) -> bool:
    """Whether the size of the gradient does not matter to the size of a step."""
    return any(part in optimizer.kind for part in _NORMALIZING)


def _course(losses: Series | None, window: int) -> tuple[float, float]:
    """How high the loss rose early on, and where it is now, over the first."""
    if losses is None or not losses.first > 0 or not math.isfinite(losses.first):
        return math.nan, math.nan
    early = losses.before(losses.first_step + window + 1, window + 1)
    highest = max(value for value in early if math.isfinite(value))
    recent = losses.tail(min(10, max(len(losses) - 1, 1)))
    return highest / losses.first, sum(recent) / len(recent) / losses.first


def _evidence(run: Run, start: _Start, threshold: float, severity: Severity) -> Evidence:
    return Evidence(
        site=Site(start.model.name),
        step=start.step,
        message=say(
            "in its first steps {optimizer} at lr {lr:.3g} changes the weights of {model} by "
            "{ratio:.2g} of their size in the median of {weights} (threshold {threshold:g}, "
            "healthy is 0.001 to 0.1){consequence}",
            optimizer=start.optimizer.kind,
            lr=start.lr,
            model=start.model.name,
            ratio=start.ratio,
            weights=start.weights,
            threshold=threshold,
            consequence=_consequence(start),
        ),
        numbers=_numbers(start),
        point=Point.PARAM,
        cause=_cause(run, start),
        fix=_fix(start),
        excluded=(
            say("warmup"),
            say("weights that start at zero"),
            say("gradients that explode with the depth from the start"),
            say("the loss has fallen all the same"),
        ),
        series=("update.ratio", "param.rms", "loss"),
        severity=severity,
    )


def _numbers(start: _Start) -> dict[str, float]:
    """What is known of the start; of a loss that was not seen nothing is."""
    numbers = {
        "ratio": start.ratio,
        "lr": start.lr,
        "proposed_lr": start.proposal,
        "weight_growth": start.growth,
        "loss_rise": start.rise,
        "loss_fraction": start.recent,
    }
    return {name: value for name, value in numbers.items() if not math.isnan(value)}


def _consequence(start: _Start) -> Message:
    if not start.finite:
        return say("; the loss is no longer finite")
    if math.isnan(start.recent):
        return Message("")
    if start.rise > 1:
        return say(
            "; the loss rises to {rise:.3g} times the first one early on, and is at {recent:.3g} "
            "times it now",
            rise=start.rise,
            recent=start.recent,
        )
    return say("; the loss is at {recent:.3g} times the first one now", recent=start.recent)


def _cause(run: Run, start: _Start) -> Message:
    inputs = run.at("input.rms", Site(start.model.name))
    if inputs and inputs.first > _LARGE_INPUT and not _normalizes(start.optimizer):
        return say(
            "The learning rate is too high for gradients of this size, and inputs with an RMS of "
            "{rms:.3g} make them so large.",
            rms=inputs.first,
        )
    if _normalizes(start.optimizer):
        return say(
            "{optimizer} moves every entry of a weight by about lr, however small the gradient, "
            "and lr is large beside the weights.",
            optimizer=start.optimizer.kind,
        )
    return say("The learning rate is too high for gradients of this size.")


def _fix(start: _Start) -> Message:
    if len(start.optimizer.groups) > 1:
        return say(
            "for group in optimizer.param_groups:  # after {optimizer} is built\n"
            '    group["lr"] *= {factor:.0e}',
            optimizer=start.optimizer.kind,
            factor=AIM / start.ratio,
        )
    return say(
        "for group in optimizer.param_groups:  # after {optimizer} is built\n"
        '    group["lr"] = {new:g}  # in place of {old:g}',
        optimizer=start.optimizer.kind,
        new=start.proposal,
        old=start.lr,
    )
