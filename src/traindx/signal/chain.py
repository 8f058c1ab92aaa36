"""How fast a gradient shrinks through a chain of sigmoid layers.

The slope of the sigmoid is s(z)(1 - s(z)), at most 1/4, and 1/4 only at z = 0: depth alone makes
the gradient vanish unless the weights grow against it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from traindx.errors import ArgumentError

STEEPEST_SLOPE = Fraction(1, 4)
"""The slope of the sigmoid at 0, its greatest."""

STEEPEST = {
    "Hardsigmoid": 1 / 6,
    "Sigmoid": float(STEEPEST_SLOPE),
    **dict.fromkeys(
        ("Hardtanh", "LogSigmoid", "ReLU", "ReLU6", "Softplus", "Softsign", "Tanh", "Tanhshrink"),
        1.0,
    ),
}
"""The greatest slope of activations that never grow a difference, by the name of torch's module."""


def sigmoid(z: float) -> float:
    """1 / (1 + exp(-z)), without overflow."""
    if z >= 0:
        return 1 / (1 + math.exp(-z))
    grown = math.exp(z)
    return grown / (1 + grown)


def sigmoid_chain_bound(depth: int, gain: Fraction = Fraction(1)) -> Fraction:
    """The greatest |dy/dx| of `depth` sigmoid layers: (gain / 4)^depth, exactly.

    `gain` bounds the spectral norm of every layer's weights; 1 gives 0.25^depth.
    """
    if depth < 0 or gain < 0:
        raise ArgumentError(
            f"A chain needs `depth` and `gain` of at least 0; got {depth} and {gain}. "
            "Count its layers, and take the largest spectral norm of their weights."
        )
    return (gain * STEEPEST_SLOPE) ** depth


def sigmoid_chain_derivative(x: float, weights: Sequence[float], biases: Sequence[float]) -> float:
    """dh_L/dx of h_0 = x, h_l = s(w_l h_(l-1) + b_l): the product of w_l h_l (1 - h_l)."""
    if len(weights) != len(biases):
        raise ArgumentError(
            f"A chain needs one bias for each weight; got {len(weights)} weights and "
            f"{len(biases)} biases. Give layers without a bias the bias 0."
        )
    h, derivative = x, 1.0
    for weight, bias in zip(weights, biases, strict=True):
        h = sigmoid(weight * h + bias)
        derivative *= weight * h * (1 - h)
    return derivative
