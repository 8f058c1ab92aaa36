"""The sigmoid chain: its bound, and its derivative against torch and differences."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from traindx.errors import ArgumentError
from traindx.signal.chain import sigmoid, sigmoid_chain_bound, sigmoid_chain_derivative


def test_twenty_layers_with_unit_weights_shrink_the_gradient_by_a_quarter_each() -> None:
    assert sigmoid_chain_bound(20) == Fraction(1, 4) ** 20
    assert float(sigmoid_chain_bound(20)) == 9.094947017729282e-13


def test_bound_is_reached_exactly_when_every_preactivation_is_0() -> None:
    biases = [0.0] + [-0.5] * 19
    assert sigmoid_chain_derivative(0.0, [1.0] * 20, biases) == sigmoid_chain_bound(20)


@pytest.mark.parametrize("depth", [0, 1, 3, 8])
def test_derivative_agrees_with_autograd_and_stays_under_the_bound(depth: int) -> None:
    rng = np.random.default_rng(depth)
    weights, biases = rng.normal(0, 2, depth).tolist(), rng.normal(0, 1, depth).tolist()
    x = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    h = x * 1
    for weight, bias in zip(weights, biases, strict=True):
        h = torch.sigmoid(weight * h + bias)
    (expected,) = torch.autograd.grad(h, x)
    derivative = sigmoid_chain_derivative(0.3, weights, biases)
    assert derivative == pytest.approx(expected.item(), rel=1e-12)
    largest = Fraction(max((abs(weight) for weight in weights), default=1.0))
    assert abs(derivative) <= sigmoid_chain_bound(depth, largest)


def test_sigmoid_does_not_overflow() -> None:
    assert sigmoid(1000.0) == 1.0
    assert sigmoid(-1000.0) == 0.0
    assert sigmoid(-2.0) == pytest.approx(1 - sigmoid(2.0), rel=1e-15)


def test_chains_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ArgumentError, match="`depth` and `gain` of at least 0; got -1 and 1"):
        sigmoid_chain_bound(-1)
    with pytest.raises(ArgumentError, match="got 2 weights and 1 biases"):
        sigmoid_chain_derivative(0.0, [1.0, 1.0], [0.0])
