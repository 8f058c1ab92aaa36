"""What a layer makes of a signal's moments, and of the mean square of a gradient.

Legend: x a layer's input, y its output, both over samples and units; "common" is the mean square
of the mean over samples, so that mean_square - common is what depends on the sample.
Weights are taken to be independent of the input, with the mean square they really have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from traindx.signal.activations import Activation
from traindx.signal.gaussian import moments, shared

_LARGEST = 1e150
"""Mean square above which its own square would not be a number any more."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Moments of a tensor over samples and units.

    Attributes:
        mean: E[x].
        mean_square: E[x^2].
        common: E over units of (mean over samples)^2, at most `mean_square`.
    """

    mean: float
    mean_square: float
    common: float

    @property
    def share(self) -> float:
        """Fraction of the mean square that depends on the sample; NaN of nothing."""
        return 1 - self.common / self.mean_square if self.mean_square else math.nan

    @property
    def rms(self) -> float:
        """Root of the mean square."""
        return math.sqrt(self.mean_square)

    def as_common(self) -> Signal:
        """The same if every sample has it."""
        return replace(self, common=self.mean_square)

    @property
    def usable(self) -> bool:
        """Whether anything can be computed of it: NaN and overflow have no theory."""
        return self.mean_square < _LARGEST and math.isfinite(self.mean + self.common)


@dataclass(frozen=True, slots=True)
class Step:
    """What a layer does, as theory says.

    Attributes:
        output: Its output's moments.
        backward: What it multiplies the mean square of a gradient by.
    """

    output: Signal
    backward: float


@dataclass(frozen=True, slots=True)
class Weighted:
    """A linear or convolutional layer.

    Attributes:
        fan_in: Products summed in an output, on average: fewer at a padded border.
        fan_out: Outputs that an input goes into, on average.
        weight_square: Mean square of the weights.
        bias_square: Mean square of the biases; 0 without.
        bias_mean: Mean of the biases.
        spectral_norm: The largest factor by which it stretches a vector; None if not known.
    """

    fan_in: float
    fan_out: float
    weight_square: float
    bias_square: float = 0.0
    bias_mean: float = 0.0
    spectral_norm: float | None = None

    @property
    def gain(self) -> float:
        """Root mean square of a weight, times sqrt(fan_in)."""
        return math.sqrt(self.weight_square * self.fan_in)

    def gain_for(self, signal: Signal, variance: float) -> float | None:
        """The gain with which the output of this input has this mean square; None if none has."""
        needed = variance - self.bias_square
        known = signal.mean_square > 0 and needed >= 0
        return math.sqrt(needed / signal.mean_square) if known else None

    def with_gain(self, gain: float) -> Weighted:
        """The same layer with its weights multiplied so that they have this gain."""
        times = gain / self.gain if self.gain else 0.0
        norm = None if self.spectral_norm is None else self.spectral_norm * times
        return replace(self, weight_square=gain**2 / self.fan_in, spectral_norm=norm)

    def step(self, x: Signal) -> Step:
        """He et al. 2015, eq. 7 and 13; what is common to all samples stays so."""
        each = self.fan_in * self.weight_square
        output = Signal(
            self.bias_mean,
            each * x.mean_square + self.bias_square,
            each * x.common + self.bias_square,
        )
        return Step(output, self.fan_out * self.weight_square)


@dataclass(frozen=True, slots=True)
class Elementwise:
    """An activation: its input is taken as Gaussian."""

    activation: Activation

    def step(self, x: Signal) -> Step:
        """By quadrature (`traindx.signal.gaussian`)."""
        # What a unit has in all samples, such as its bias, is taken as a part of its spread, so
        # that the covariance of two samples is what is common to them beyond the mean of all.
        square = x.mean**2
        variance = max(x.mean_square - square, 0.0)
        made = moments(self.activation, variance, x.mean)
        covariance = min(x.common - square, variance)
        common = shared(self.activation, variance, covariance, x.mean)
        return Step(Signal(made.mean, made.mean_square, common), made.slope_square)


@dataclass(frozen=True, slots=True)
class BatchNormalized:
    """Normalized over the batch in training: what is common to all samples is taken away.

    Attributes:
        eps: Added to the variance.
        weight_square: Mean square of the weights; 1 without.
        bias_square: Mean square of the biases; 0 without.
    """

    eps: float
    weight_square: float = 1.0
    bias_square: float = 0.0

    def step(self, x: Signal) -> Step:
        """Every unit's variance is taken as the mean of them."""
        variance = max(x.mean_square - x.common, 0.0)
        return _normalized(self, variance, 0.0)


@dataclass(frozen=True, slots=True)
class LayerNormalized:
    """Normalized within each sample: what is common to its units is taken away.

    Attributes:
        eps: Added to the variance.
        centred: Whether the mean is taken away; RMSNorm does not.
        weight_square: Mean square of the weights; 1 without.
        bias_square: Mean square of the biases; 0 without.
    """

    eps: float
    centred: bool = True
    weight_square: float = 1.0
    bias_square: float = 0.0

    def step(self, x: Signal) -> Step:
        """Every sample's variance is taken as the mean of them."""
        taken = x.mean**2 if self.centred else 0.0
        variance = max(x.mean_square - taken, 0.0)
        return _normalized(self, variance, max(x.common - taken, 0.0))


@dataclass(frozen=True, slots=True)
class Dropped:
    """Dropout in training: each entry is kept with probability 1 - p, times 1 / (1 - p)."""

    p: float

    def step(self, x: Signal) -> Step:
        """The mean over samples stays; the mean square grows (Srivastava et al. 2014, sec. 10)."""
        if self.p >= 1:
            return Step(Signal(0.0, 0.0, 0.0), 0.0)
        grown = 1 / (1 - self.p)
        return Step(replace(x, mean_square=x.mean_square * grown), grown)


@dataclass(frozen=True, slots=True)
class Passed:
    """Nothing happens: a flattening, a dropout in evaluation."""

    def step(self, x: Signal) -> Step:
        """The same."""
        return Step(x, 1.0)


@dataclass(frozen=True, slots=True)
class Scaled:
    """Multiplied by a number."""

    factor: float

    def step(self, x: Signal) -> Step:
        """A square is multiplied by the factor's."""
        square = self.factor**2
        output = Signal(self.factor * x.mean, square * x.mean_square, square * x.common)
        return Step(output, square)


@dataclass(frozen=True, slots=True)
class Masked:
    """Multiplied by a tensor that does not depend on it: a dropout's mask, a scale for each unit.

    Attributes:
        by: Moments of that tensor.
    """

    by: Signal

    def step(self, x: Signal) -> Step:
        """Moments of independent factors multiply."""
        output = Signal(
            self.by.mean * x.mean,
            self.by.mean_square * x.mean_square,
            self.by.common * x.common,
        )
        return Step(output, self.by.mean_square)


@dataclass(frozen=True, slots=True)
class Pooled:
    """A pooling: its effect depends on how alike neighbours are, and is taken as measured.

    It is homogeneous: an input of another scale makes an output of another scale.

    Attributes:
        given: Moments of its input as measured.
        made: Moments of its output as measured.
        backward: What it multiplied the mean square of a gradient by.
    """

    given: Signal
    made: Signal
    backward: float = math.nan

    def step(self, x: Signal) -> Step:
        """The measured output, in the input's scale."""
        square = x.mean_square / self.given.mean_square if self.given.mean_square else 0.0
        return Step(Scaled(math.sqrt(square)).step(self.made).output, self.backward)


@dataclass(frozen=True, slots=True)
class Summed:
    """A sum of signals that do not depend on each other, as around a residual block.

    If one of two has come through random weights since they parted, its unit i is independent of
    the other's: their product's mean is the product of their means.

    Attributes:
        factors: What each is multiplied by.
    """

    factors: tuple[float, ...]

    def of(self, signals: Sequence[Signal]) -> Signal:
        """Means add, and what lies beyond the square of the mean adds."""
        each = [Scaled(f).step(x).output for f, x in zip(self.factors, signals, strict=True)]
        square = sum(x.mean for x in each) ** 2
        return Signal(
            sum(x.mean for x in each),
            square + sum(x.mean_square - x.mean**2 for x in each),
            square + sum(x.common - x.mean**2 for x in each),
        )

    def backward(self, index: int) -> float:
        """What it multiplies the mean square of a gradient by on the way to one of them."""
        return self.factors[index] ** 2


@dataclass(frozen=True, slots=True)
class Joined:
    """Signals side by side, as where a U-Net's levels meet.

    Attributes:
        parts: Fraction of all elements that each has.
    """

    parts: tuple[float, ...]

    def of(self, signals: Sequence[Signal]) -> Signal:
        """The mean over all elements."""
        each = list(zip(self.parts, signals, strict=True))
        return Signal(
            sum(part * x.mean for part, x in each),
            sum(part * x.mean_square for part, x in each),
            sum(part * x.common for part, x in each),
        )

    def backward(self, index: int) -> float:
        """A gradient passes as it is; its mean square is taken as the same in each part."""
        del index
        return 1.0


@dataclass(frozen=True, slots=True)
class Given:
    """Where a signal begins: a batch, or a parameter that is added as it is."""

    signal: Signal


Layer = (
    Weighted
    | Elementwise
    | BatchNormalized
    | LayerNormalized
    | Dropped
    | Passed
    | Scaled
    | Masked
    | Pooled
)
"""What has one input."""

Junction = Summed | Joined
"""What has several."""


def _normalized(layer: BatchNormalized | LayerNormalized, variance: float, common: float) -> Step:
    """The share of `variance` that eps leaves, times the weights."""
    divisor = variance + layer.eps
    scale = layer.weight_square / divisor if divisor else 0.0
    output = Signal(0.0, scale * variance + layer.bias_square, scale * common + layer.bias_square)
    return Step(output, scale)
