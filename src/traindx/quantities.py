"""The vocabulary: what can be asked of a run, with unit and meaning.

`<point>.<statistic>` follows from `TensorStats`; the other quantities are scalars as written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from traindx.messages import say
from traindx.normalized import NORMALIZED
from traindx.optimized import OPTIMIZED
from traindx.pictured import PICTURED
from traindx.probed import PROBED
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
        entries: What each entry of a vector stands for; empty for a single number.
    """

    name: str
    unit: str
    meaning: str
    point: Point | None = None
    derive: Callable[[TensorStats], float] | None = None
    entries: str = ""


def _std(stats: TensorStats) -> float:
    return math.sqrt(max(stats.m2, 0.0) / stats.count) if stats.count else math.nan


def _rms(stats: TensorStats) -> float:
    return math.sqrt(stats.mean_square) if stats.mean_square >= 0 else math.nan


def _l2(stats: TensorStats) -> float:
    return _rms(stats) * math.sqrt(stats.count)


def _zero_fraction(stats: TensorStats) -> float:
    return stats.zeros / stats.sampled if stats.sampled else math.nan


_POINTS = {
    Point.INPUT: say("the first floating-point tensor given to the model"),
    Point.OUTPUT: say("the module's output"),
    Point.OUTPUT_GRAD: say("the gradient of the loss with respect to the module's output"),
    Point.GRAD: say("the parameter's gradient as backward leaves it, loss scale divided out"),
    Point.APPLIED_GRAD: say("the gradient the optimizer was given, where it differs (clipped)"),
}
_STATISTICS: dict[str, tuple[str, Callable[[TensorStats], float]]] = {
    "mean": (say("Mean"), lambda stats: stats.mean),
    "std": (say("Standard deviation (biased)"), _std),
    "rms": (say("Root mean square"), _rms),
    "l2": (say("Euclidean norm"), _l2),
    "min": (
        say("Least element, among stretches if there are many and no compiled library,"),
        lambda stats: stats.min,
    ),
    "max": (
        say("Greatest element, among stretches if there are many and no compiled library,"),
        lambda stats: stats.max,
    ),
    "zero_fraction": (
        say("Fraction of exact zeros in a sample, taken of inputs and outputs"),
        _zero_fraction,
    ),
    "count": (say("Number of elements"), lambda stats: float(stats.count)),
    "nonfinite": (say("Number of NaN and infinite elements"), lambda stats: float(stats.nonfinite)),
}
_PURE_NUMBERS = {"zero_fraction", "count", "nonfinite"}


def _unit(statistic: str) -> str:
    return "1" if statistic in _PURE_NUMBERS else say("as the tensor's")


_SCALARS = (
    Quantity(
        "loss", say("as the user's"), say("The mean of the scalars given to backward in the step.")
    ),
    Quantity("lr", "1", say("Learning rate of the optimizer's first group.")),
    Quantity(
        "step.seconds",
        say("seconds"),
        say("Wall time from the end of the last step to this one's."),
    ),
    Quantity(
        "batch.size", say("samples"), say("First dimension of the model's first tensor argument.")
    ),
    Quantity("backwards", "1", say("Backward passes in the step.")),
    Quantity(
        "param.rms",
        say("as the parameter's"),
        say("RMS of the parameter before the step, over a sample of a few thousand entries."),
    ),
    Quantity(
        "update.ratio",
        "1",
        say(
            "RMS of the parameter's change in the step over its RMS before, over the same sample; "
            "infinite where the parameter was zero."
        ),
    ),
    Quantity(
        "grad.absent",
        say("0 or 1"),
        say("1 if a trainable parameter's gradient is None at the step."),
    ),
    Quantity(
        "grad.uncleared",
        "1",
        say(
            "1 if the optimizer's gradient in the measured step was added onto that of the step "
            "before because nothing cleared it, else 0; a fraction where it stepped several times "
            "in it."
        ),
    ),
    Quantity(
        "mode.training", say("0 or 1"), say("The model's `training` flag in its training forward.")
    ),
    *(Quantity(f"norm.{name}", unit, meaning) for name, unit, meaning in NORMALIZED),
    Quantity(
        "output.batch_share",
        "1",
        say(
            "Variance across the samples of a batch over the mean square, both averaged over up "
            "to 128 samples and about 32 entries of each: 0 where every sample gives the same "
            "output, NaN where all of it is 0. Taken in the first four measured steps, later in "
            "every fourth and at least 16 steps apart, of outputs whose first axis is known to be "
            "the batch."
        ),
    ),
    Quantity(
        "units.dead_fraction",
        "1",
        say(
            "Fraction of a ReLU's units (channels) whose output was zero over a stretch of "
            "measured steps with at least 1,024 values of each unit from at least 64 samples. It "
            "stands at the ReLU or, where that is a function, at the module whose output goes "
            "into it or which returns what comes out. Of a ReLU that serves several layers, the "
            "worst."
        ),
    ),
    Quantity(
        "units.samples",
        "1",
        say(
            "Values of each unit over which `units.dead_fraction` looked: samples times positions."
        ),
    ),
    *(
        Quantity(
            f"attention.{name}",
            unit,
            say(
                "{what} Of up to 16 queries in up to 16 heads of 2 samples, computed again from "
                "what autograd keeps of every attention with a graph; at the innermost module that "
                "it was called in. After the first four measured steps at least 8 steps apart.",
                what=what,
            ),
        )
        for name, unit, what in (
            (
                "entropy",
                "1",
                say(
                    "Mean entropy of attention's weights over the logarithm of the keys that the "
                    "mask lets through: 1 where all are weighted alike, 0 where one takes all "
                    "(collapse, Zhai et al. 2023). NaN where no query has a choice."
                ),
            ),
            ("entropy_min", "1", say("The same of the head with the lowest.")),
            ("logit_min", "1", say("Least logit of a key that the mask lets through.")),
            (
                "logit_max",
                "1",
                say(
                    "Greatest logit of a key that the mask lets through: the scaled product of "
                    "query and key, before any bias. Training diverges where it goes on growing "
                    "(Dehghani et al. 2023)."
                ),
            ),
        )
    ),
    Quantity("logged", say("as the user's"), say("What the script passed to `traindx.log`.")),
)

EXPONENTS = range(-40, 17)
"""Powers of two that the bins of exponent histograms stand for; the outer two hold the rest."""

_BIN = say(
    "|x| from 2^e up to 2^(e+1), for e from -40 to 16; the first and last hold what is beyond"
)
_CHANNEL = say("a channel; evenly spaced ones where there are more than 512")
_VECTORS = (
    *(
        Quantity(
            f"{point}.exponents",
            say("elements"),
            say(
                "Binary exponents of {what}: finite elements other than 0 in a sample of about "
                "4,096. Taken in the first four measured steps, then about twice in every "
                "doubling.",
                what=what,
            ),
            entries=_BIN,
        )
        for point, what in (
            ("output", say("the module's output")),
            ("grad", say("the parameter's gradient")),
            ("param", say("the parameter")),
        )
    ),
    *(
        Quantity(
            f"norm.{whose}_{which}",
            unit,
            say("{what} of each channel {when}", what=what, when=when),
            entries=_CHANNEL,
        )
        for whose, when in (
            (
                "batch",
                say("in the step's training batches, NaN where rounding in the buffers hides it."),
            ),
            ("running", say("as the normalization keeps it, after the step.")),
        )
        for which, unit, what in (
            ("mean", say("as the tensor's"), say("Mean")),
            ("var", say("as the tensor's, squared"), say("Variance (unbiased)")),
        )
    ),
)

_OPTIMIZED = tuple(Quantity(*each) for each in OPTIMIZED)
_PICTURED = tuple(
    Quantity(name, unit, meaning, entries=entries) for name, unit, meaning, entries in PICTURED
)

_PROBED = (
    *(Quantity(f"probe.{name}", unit, meaning) for name, unit, meaning in PROBED),
    Quantity(
        "probe.comparisons", "1", say("Known loss functions that compare an output with a target.")
    ),
    Quantity(
        "probe.unreached",
        "1",
        say("Parameters to be trained that have no gradient after a backward pass."),
    ),
    Quantity(
        "probe.outside_optimizer",
        "1",
        say("Parameters with a gradient that no optimizer holds."),
    ),
    Quantity(
        "probe.curvature",
        "1",
        say(
            "RMS of f(x + d) + f(x - d) - 2 f(x) over that of f(x + d) - f(x - d), the greatest "
            "of all layers with weights: 0 if they are affine in an input."
        ),
    ),
    Quantity(
        "probe.alike_layers",
        "1",
        say("Weights whose units are all alike after three steps of gradient descent."),
    ),
    Quantity(
        "probe.input_nonfinite",
        "1",
        say("NaN and infinite elements in the tensors given to the model and its loss."),
    ),
    Quantity(
        "probe.input_rms",
        say("as the tensor's"),
        say("RMS of what the first layer with weights is given."),
    ),
    Quantity("probe.overlap", "1", say("Fraction of a data set that is in the training set, too.")),
    Quantity(
        "probe.joint_scaling",
        "1",
        say(
            "How many times nearer to mean 0 and deviation 1 training and other data are together "
            "than training alone."
        ),
    ),
    Quantity(
        "probe.norm_group",
        "1",
        say("Numbers that a normalization takes one mean and deviation of."),
    ),
    Quantity(
        "probe.undone_biases",
        "1",
        say("Layers whose bias the normalization behind them subtracts."),
    ),
    Quantity(
        "probe.decay_half_life",
        say("steps"),
        say("Steps in which weight decay alone halves the weights of normalization layers."),
    ),
    Quantity("probe.parameters", "1", say("Elements of all parameters.")),
    Quantity("probe.trainable_parameters", "1", say("Elements of those that take gradients.")),
    Quantity("probe.parameter_bytes", say("bytes"), say("Memory of all parameters.")),
    Quantity(
        "probe.activation_bytes",
        say("bytes"),
        say("What autograd keeps of a batch for backward, besides parameters and buffers."),
    ),
    Quantity(
        "probe.forward_seconds", say("seconds"), say("Time of the model and its loss on a batch.")
    ),
    Quantity(
        "probe.backward_seconds", say("seconds"), say("Time of the backward pass of a batch.")
    ),
)
"""What probes measure before training, at step -1."""

QUANTITIES: dict[str, Quantity] = {
    quantity.name: quantity
    for quantity in (
        *(
            Quantity(
                f"{point}.{name}",
                _unit(name),
                say("{words} of {what}.", words=words, what=what),
                point,
                derive,
            )
            for point, what in _POINTS.items()
            for name, (words, derive) in _STATISTICS.items()
        ),
        *_SCALARS,
        *_OPTIMIZED,
        *_VECTORS,
        *_PICTURED,
        *_PROBED,
    )
}
