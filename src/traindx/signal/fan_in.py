"""The fan-in rule: Var(sum_i w_i x_i) = fan_in * s^2 * v.

It holds if the weights are independent of each other and of the inputs, with mean 0 and variance
s^2, and v is the mean square of the inputs, averaged over them: cross terms vanish with the mean
of a weight, so the inputs may depend on each other. v is the inputs' variance only if their mean
is 0; after a ReLU it is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from traindx.errors import ArgumentError

Draw = Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]]
"""Draws an array of a shape from a generator."""

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Enumerated:
    """A variance over every case of a discrete layer, and what the rule says of it."""

    variance: Fraction
    predicted: Fraction
    num_cases: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A variance estimated from samples, its standard error, and what the rule says of it."""

    variance: float
    standard_error: float
    predicted: float
    num_samples: int

    @property
    def z(self) -> float:
        """How many standard errors the estimate lies above the prediction."""
        off = self.variance - self.predicted
        # Outputs that do not vary have no standard error: then only equality will do.
        return off / self.standard_error if self.standard_error else off and math.inf * off


def predicted_variance(fan_in: int, s2: Fraction, v: Fraction) -> Fraction:
    """What the rule says: fan_in * s^2 * v."""
    if fan_in < 1 or s2 < 0 or v < 0:
        raise ArgumentError(
            f"The fan-in rule needs `fan_in` of at least 1 and no negative variance or mean "
            f"square; got fan_in={fan_in}, s2={s2}, v={v}. Count the inputs of one unit."
        )
    return fan_in * s2 * v


def enumerate_variance(
    fan_in: int, weights: Sequence[Fraction], inputs: Sequence[Fraction]
) -> Enumerated:
    """The exact variance of the output when weights and inputs are equally likely values.

    Every one of (len(weights) * len(inputs))^fan_in cases is summed; list a value twice to make it
    twice as likely.
    """
    if not weights or not inputs or sum(weights):
        raise ArgumentError(
            "The fan-in rule needs weights of mean 0 and at least one input; got weights "
            f"{[str(weight) for weight in weights]} and {len(inputs)} inputs. "
            "Subtract the weights' mean."
        )
    outputs = [
        sum((w * x for w, x in zip(ws, xs, strict=True)), Fraction(0))
        for ws in product(weights, repeat=fan_in)
        for xs in product(inputs, repeat=fan_in)
    ]
    mean_square, center = _mean_square(outputs), sum(outputs, Fraction(0)) / len(outputs)
    rule = predicted_variance(fan_in, _mean_square(weights), _mean_square(inputs))
    return Enumerated(mean_square - center**2, rule, len(outputs))


def sample_variance(
    fan_in: int,
    draw_weights: Draw,
    draw_inputs: Draw,
    rng: np.random.Generator,
    *,
    predicted: float,
    num_samples: int,
) -> Estimate:
    """The variance of the output over `num_samples` fresh layers and inputs.

    The standard error is that of an unbiased variance from its own fourth central moment m4:
    sqrt((m4 - m2^2 (n - 3) / (n - 1)) / n).
    """
    if num_samples < 2:
        raise ArgumentError(
            f"A variance needs at least 2 samples; got {num_samples}. Use 1000 or more."
        )
    outputs = np.empty(num_samples)
    for start in range(0, num_samples, _BLOCK):  # a block at a time bounds the memory
        block = outputs[start : start + _BLOCK]
        shape = (len(block), fan_in)
        block[:] = np.sum(draw_weights(rng, shape) * draw_inputs(rng, shape), axis=1)
    n, deviations = num_samples, outputs - np.mean(outputs)
    m2, m4 = float(np.sum(deviations**2)) / (n - 1), float(np.mean(deviations**4))
    return Estimate(m2, math.sqrt((m4 - m2 * m2 * (n - 3) / (n - 1)) / n), predicted, n)


def _mean_square(values: Sequence[Fraction]) -> Fraction:
    return sum((value * value for value in values), Fraction(0)) / len(values)
