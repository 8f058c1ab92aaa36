"""Mean-field theory of a deep, wide, plain network: what depth does to its signal.

Legend: z the pre-activations of a layer, q = E[z^2]; weights are independent with variance
s_w^2 / fan_in, biases with variance s_b^2. One layer maps q to s_w^2 E[phi(sqrt(q) u)^2] + s_b^2,
u ~ N(0, 1) (Poole et al. 2016, eq. 3); a gradient's mean square is multiplied by
chi = s_w^2 E[phi'(sqrt(q) u)^2] (Schoenholz et al. 2017, eq. 7).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.signal.activations import Activation
from traindx.signal.gaussian import expectation, moments, shared

_LOWEST, _HIGHEST = 1e-10, 1e10
_PER_DECADE = 20
_SAME = 1e-9
"""Relative difference under which a variance counts as its own image."""


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """A variance that a layer maps to itself.

    Attributes:
        variance: q*.
        slope: dV/dq at q*: under 1 the variance returns to it, over 1 it runs away.
        chi: What a layer multiplies a gradient's mean square by there.
    """

    variance: float
    slope: float
    chi: float

    @property
    def stable(self) -> bool:
        """Whether a small deviation shrinks with depth."""
        return abs(self.slope) < 1

    @property
    def depth_scale(self) -> float:
        """Layers over which a gradient's mean square changes e-fold: 1 / |ln chi|."""
        return depth_scale(self.chi)


@dataclass(frozen=True, slots=True)
class PlainNetwork:
    """Layers alike, each an activation after random weights.

    Attributes:
        activation: phi.
        weight_variance: s_w^2, the variance of a weight times fan_in: the square of the gain.
        bias_variance: s_b^2.
    """

    activation: Activation
    weight_variance: float
    bias_variance: float = 0.0

    def __post_init__(self) -> None:
        for number in (self.weight_variance, self.bias_variance):
            if not 0 <= number < math.inf:
                raise ArgumentError(
                    say("A variance is a finite number of at least 0; got {number}.", number=number)
                )

    def variance(self, q: float) -> float:
        """V(q): the next layer's."""
        mean_square = moments(self.activation, q).mean_square
        return self.weight_variance * mean_square + self.bias_variance

    def chi(self, q: float) -> float:
        """What a layer with pre-activations of variance q multiplies a gradient's mean square by.

        Also the slope of the correlation map at 1: over 1, like inputs move apart (chaos).
        """
        return self.weight_variance * moments(self.activation, q).slope_square

    def variance_slope(self, q: float) -> float:
        """dV/dq, from the density's own derivative: phi need not be smooth."""
        if q <= 0:
            raise ArgumentError(say("A slope is taken at a variance over 0; got {q}.", q=q))
        square = self.activation.value
        pulled = expectation(self.activation, lambda x: square(x) ** 2 * (x**2 / q - 1), q)
        return self.weight_variance * pulled / (2 * q)

    def correlation(self, q: float, c: float) -> float:
        """Correlation of the next layer's pre-activations for two inputs of correlation c.

        Both have variance q.
        """
        common = self.weight_variance * shared(self.activation, q, c * q) + self.bias_variance
        return common / self.variance(q)

    def fixed_points(self) -> list[FixedPoint]:
        """Every variance from 1e-10 to 1e10 that a layer keeps, least first.

        Empty where there is none, and where there are all of them (`keeps_any_variance`).
        """
        if self.keeps_any_variance():
            return []
        roots = _roots(lambda log_q: math.log(self.variance(math.exp(log_q)) or 1e-300) - log_q)
        return [FixedPoint(q, self.variance_slope(q), self.chi(q)) for q in map(math.exp, roots)]

    def keeps_any_variance(self) -> bool:
        """Whether every variance is kept: ReLU's, at the gain sqrt(2) and without biases."""
        return all(abs(self.variance(q) / q - 1) < _SAME for q in (1e-6, 1e-2, 1.0, 1e2, 1e6))


def depth_scale(factor: float) -> float:
    """Layers over which what is multiplied by `factor` in each changes e-fold."""
    if factor <= 0:
        return 0.0
    return math.inf if factor == 1 else 1 / abs(math.log(factor))


def gain(activation: Activation, variance: float = 1.0) -> float:
    """The standard deviation of a weight, times sqrt(fan_in), that keeps this variance.

    sqrt(q / E[phi(sqrt(q) u)^2]). Whether the variance then stays there is another matter:
    `PlainNetwork.variance_slope`.
    """
    mean_square = moments(activation, variance).mean_square
    if not (variance > 0 and mean_square > 0):
        raise ArgumentError(
            say(
                "No gain keeps a variance of {variance}: {name} makes 0 of it.",
                variance=variance,
                name=activation.name,
            )
        )
    return math.sqrt(variance / mean_square)


def critical(activation: Activation, variance: float = 1.0) -> PlainNetwork | None:
    """The network with this fixed point at which gradients keep their size: chi = 1.

    None where no bias variance of at least 0 makes it one.
    """
    made = moments(activation, variance)
    if not made.slope_square:
        return None
    weight_variance = 1 / made.slope_square
    bias_variance = variance - weight_variance * made.mean_square
    if bias_variance < -_SAME * variance:
        return None
    return PlainNetwork(activation, weight_variance, max(bias_variance, 0.0))


def _roots(function: Callable[[float], float]) -> list[float]:
    """Zeros between ln 1e-10 and ln 1e10, by sign changes on a grid and bisection."""
    low, high = math.log(_LOWEST), math.log(_HIGHEST)
    count = round((high - low) / math.log(10) * _PER_DECADE)
    # What differs by rounding only has no sign: GELU keeps every large variance, as ReLU does.
    values = [(x, function(x)) for x in (low + (high - low) * i / count for i in range(count + 1))]
    signed = [(x, value) for x, value in values if abs(value) > _SAME]
    return [
        _bisected(function, left, right, at_left)
        for (left, at_left), (right, at_right) in pairwise(signed)
        if at_left * at_right < 0
    ]


def _bisected(function: Callable[[float], float], low: float, high: float, at_low: float) -> float:
    for _ in range(60):
        middle = (low + high) / 2
        value = function(middle)
        if value * at_low > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
