"""Expectations of an activation of Gaussian numbers, by quadrature to about 1e-12.

Gauss-Legendre over short panels: they end at the activation's kinks, and crowd around 0 on the
scale of the activation itself, since of a wide Gaussian a sigmoid is nearly a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.signal.activations import Activation, Array

_NODES = 16
"""Nodes of each panel."""
_REACH = 13
"""Standard deviations the integral reaches: beyond them lies 6e-39 of the mass."""
_GRADED = tuple(sign * 2.0**k for k in range(-2, 11) for sign in (-1, 1))
"""Ends of panels in units of the activation's argument."""


@dataclass(frozen=True, slots=True)
class Moments:
    """What an activation makes of x ~ N(mean, variance).

    Attributes:
        mean: E[phi(x)].
        mean_square: E[phi(x)^2].
        slope_square: E[phi'(x)^2].
    """

    mean: float
    mean_square: float
    slope_square: float


def moments(activation: Activation, variance: float, mean: float = 0.0) -> Moments:
    """The moments of an activation of x ~ N(mean, variance).

    Raises:
        ArgumentError: The variance is negative, or one of them is not finite.
    """
    x, weights = nodes(activation, variance, mean)
    value = activation.value(x)
    return Moments(
        float(weights @ value),
        float(weights @ value**2),
        float(weights @ activation.slope(x) ** 2),
    )


def expectation(
    activation: Activation, function: Callable[[Array], Array], variance: float, mean: float = 0.0
) -> float:
    """E[function(x)] for x ~ N(mean, variance); it is smooth where the activation is."""
    x, weights = nodes(activation, variance, mean)
    return float(weights @ function(x))


def shared(activation: Activation, variance: float, common: float, mean: float = 0.0) -> float:
    """E[phi(x) phi(y)] of two Gaussians of equal mean and variance, and covariance `common`.

    x = mean + sqrt(common) z + sqrt(variance - common) u, y the same with a u of its own: given z
    the two are independent, so it is the mean of E[phi(x) | z]^2. A negative covariance turns y's z
    around.
    """
    part = min(abs(common), variance)
    rest = variance - part
    z, weights = nodes(activation, part, mean, blur=math.sqrt(rest))

    first = _means(activation, rest, z)
    second = first if common >= 0 else _means(activation, rest, 2 * mean - z)
    return float(weights @ (first * second))


def _means(activation: Activation, variance: float, means: Array) -> Array:
    """E[phi(x)] of x ~ N(mean, variance) for each of these means."""
    std = math.sqrt(variance)
    if not std:
        return activation.value(means)
    bends = (np.array([0.0, *_GRADED, *activation.kinks]) - means[:, None]) / std
    whole = np.broadcast_to(np.arange(-_REACH, _REACH + 1.0), (len(means), 2 * _REACH + 1))
    ends = np.sort(np.concatenate([whole, np.minimum(np.maximum(bends, -_REACH), _REACH)], axis=1))
    row, panel = np.nonzero(np.diff(ends))
    z, weights = _panels(ends[row, panel], ends[row, panel + 1])
    values = activation.value(means[row, None] + std * z)
    return np.bincount(row, (weights * values).sum(1), len(means)).astype(np.float64)


def nodes(
    activation: Activation, variance: float, mean: float, *, blur: float = 0.0
) -> tuple[Array, Array]:
    """Points and weights: E[f(x)] is their sum of weights times f.

    `blur` is the scale on which f rounds off the activation's kinks, if it does.
    """
    if not (0 <= variance < math.inf and math.isfinite(mean)):
        raise ArgumentError(
            say(
                "A Gaussian needs a finite mean and a finite variance of at least 0; got {mean} "
                "and {variance}.",
                mean=mean,
                variance=variance,
            )
        )
    std = math.sqrt(variance)
    if not std:
        return np.array([mean]), np.ones(1)
    round_kinks = (bend + blur * by for bend in activation.kinks for by in _GRADED if blur)
    bends = [(b - mean) / std for b in (0.0, *_GRADED, *activation.kinks, *round_kinks)]
    ends = np.array(sorted({*map(float, range(-_REACH, _REACH + 1)), *_inner(bends)}))
    z, weights = _panels(ends[:-1], ends[1:])
    return mean + std * z.ravel(), weights.ravel()


def _inner(bends: Sequence[float]) -> list[float]:
    return [bend for bend in bends if -_REACH < bend < _REACH]


def _panels(low: Array, high: Array) -> tuple[Array, Array]:
    """Nodes z of each panel (P, 16), and their weights times the density of N(0, 1)."""
    point, weight = _legendre()
    half = (high - low)[:, None] / 2
    z = (low + high)[:, None] / 2 + half * point
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return z, half * weight * density


@lru_cache(maxsize=1)
def _legendre() -> tuple[Array, Array]:
    point, weight = np.polynomial.legendre.leggauss(_NODES)
    return point, weight
