"""The vocabulary: what can be asked of a run, with unit and meaning.

`<point>.<statistic>` follows from `TensorStats`; the other quantities are scalars as written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from traindx.records import Point, TensorStats


@dataclass(frozen=True, slots=True)
class Quantity:
    """One named quantity.

    Attributes:
        name: `grad.rms`.
        unit: Unit in words; "1" for a pure number.
        meaning: One sentence.
        point: The point whose statistics it follows from; None for a scalar.
        derive: How it follows from them; None for a scalar.
    """

    name: str
    unit: str
    meaning: str
    point: Point | None = None
    derive: Callable[[TensorStats], float] | None = None


def _std(stats: TensorStats) -> float:
    return math.sqrt(max(stats.m2, 0.0) / stats.count) if stats.count else math.nan


def _rms(stats: TensorStats) -> float:
    return math.sqrt(stats.mean_square) if stats.mean_square >= 0 else math.nan


def _l2(stats: TensorStats) -> float:
    return _rms(stats) * math.sqrt(stats.count)


def _zero_fraction(stats: TensorStats) -> float:
    return stats.zeros / stats.sampled if stats.sampled else math.nan


_POINTS = {
    Point.OUTPUT: "the module's output",
    Point.OUTPUT_GRAD: "the gradient of the loss with respect to the module's output",
    Point.GRAD: "the parameter's gradient as backward leaves it, loss scale divided out",
    Point.APPLIED_GRAD: "the gradient the optimizer was given, where it differs (clipped)",
}
_STATISTICS: dict[str, tuple[str, Callable[[TensorStats], float]]] = {
    "mean": ("Mean", lambda stats: stats.mean),
    "std": ("Standard deviation (biased)", _std),
    "rms": ("Root mean square", _rms),
    "l2": ("Euclidean norm", _l2),
    "min": ("Least element", lambda stats: stats.min),
    "max": ("Greatest element", lambda stats: stats.max),
    "zero_fraction": (
        "Fraction of exact zeros in a sample, taken of outputs",
        _zero_fraction,
    ),
    "count": ("Number of elements", lambda stats: float(stats.count)),
    "nonfinite": ("Number of NaN and infinite elements", lambda stats: float(stats.nonfinite)),
}
_PURE_NUMBERS = {"zero_fraction", "count", "nonfinite"}


def _unit(statistic: str) -> str:
    return "1" if statistic in _PURE_NUMBERS else "as the tensor's"


_SCALARS = (
    Quantity("loss", "as the user's", "The mean of the scalars given to backward in the step."),
    Quantity("lr", "1", "Learning rate of the optimizer's first group."),
    Quantity("step.seconds", "seconds", "Wall time from the end of the last step to this one's."),
    Quantity("batch.size", "samples", "First dimension of the model's first tensor argument."),
    Quantity("backwards", "1", "Backward passes in the step."),
    Quantity(
        "param.rms",
        "as the parameter's",
        "RMS of the parameter before the step, over a sample of about 4,096 entries.",
    ),
    Quantity(
        "update.ratio",
        "1",
        "RMS of the parameter's change in the step over its RMS before, over the same sample; "
        "infinite where the parameter was zero.",
    ),
    Quantity("grad.absent", "0 or 1", "1 if a trainable parameter's gradient is None at the step."),
    Quantity(
        "grad.uncleared",
        "1",
        "1 if the optimizer's gradient in the measured step was added onto that of the step before "
        "because nothing cleared it, else 0; a fraction where it stepped several times in it.",
    ),
    Quantity("mode.training", "0 or 1", "The model's `training` flag in its training forward."),
    Quantity("norm.training", "0 or 1", "A normalization's `training` flag in that forward."),
    Quantity("norm.updates", "1", "Updates of the running statistics in the step."),
    Quantity("norm.tracked", "1", "`num_batches_tracked` after the step."),
    Quantity(
        "norm.initial_weight",
        "1",
        "Weight that the initial running statistics still have, (1 - momentum)^tracked; 0 for "
        "statistics that were loaded without their counter.",
    ),
    Quantity(
        "norm.running_gap",
        "standard deviations",
        "RMS over channels of how far the normalized batch would move if the running statistics "
        "replaced the batch's own: sqrt(b^2 + (a - 1)^2), a = sqrt((var_b + eps)/(var_r + eps)), "
        "b = (mean_b - mean_r)/sqrt(var_r + eps). With several training passes in the step "
        "(`norm.updates` > 1) the batch's statistics are their weighted mean over these passes.",
    ),
    Quantity(
        "norm.running_change",
        "1",
        "RMS over channels of the change of running_mean in the step, over the running standard "
        "deviation sqrt(running_var + eps).",
    ),
)

QUANTITIES: dict[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        *(
            Quantity(f"{point}.{name}", _unit(name), f"{words} of {what}.", point, derive)
            for point, what in _POINTS.items()
            for name, (words, derive) in _STATISTICS.items()
        ),
        *_SCALARS,
    )
}
