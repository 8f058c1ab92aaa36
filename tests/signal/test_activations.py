"""Every activation and its slope against torch's own module and autograd, in float64."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import nn

from traindx.errors import ArgumentError
from traindx.signal.activations import activation, names, sigmoid

CASES: list[tuple[str, Mapping[str, object]]] = [
    *((name, {}) for name in names() if name != "Threshold"),
    ("Threshold", {"threshold": 0.3, "value": -2.0}),
    ("LeakyReLU", {"negative_slope": 0.2}),
    ("ELU", {"alpha": 1.7}),
    ("CELU", {"alpha": 0.6}),
    ("GELU", {"approximate": "tanh"}),
    ("Softplus", {"beta": 2.5, "threshold": 4.0}),
    ("Hardtanh", {"min_val": -2.0, "max_val": 0.5}),
    ("Hardshrink", {"lambd": 1.1}),
    ("Softshrink", {"lambd": 0.2}),
]
# No kink of any of them lies on the grid.
GRID = np.linspace(-30, 30, 4001) + 0.0123456


@pytest.mark.parametrize(("name", "options"), CASES)
def test_value_and_slope_are_those_of_torch(name: str, options: Mapping[str, object]) -> None:
    ours = activation(name, options)
    theirs = getattr(nn, name)(**options).double()
    x = torch.tensor(GRID, dtype=torch.float64, requires_grad=True)
    y = theirs(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    np.testing.assert_allclose(ours.value(GRID), y.detach().numpy(), rtol=1e-13, atol=1e-15)
    # In float64, too, torch itself takes the sixth of Hardsigmoid and CELU's 1 / alpha in float32.
    rtol = {"Hardsigmoid": 3e-8, "CELU": 1e-6}.get(name, 1e-12)
    np.testing.assert_allclose(ours.slope(GRID), slope.numpy(), rtol=rtol, atol=1e-14)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_nothing_overflows_far_out(name: str, options: Mapping[str, object]) -> None:
    far = np.array([-1e4, -800.0, 800.0, 1e4])
    ours = activation(name, options)
    assert np.all(np.isfinite(ours.value(far)))
    assert np.all(np.isfinite(ours.slope(far)))


def test_every_smooth_stretch_lies_between_kinks() -> None:
    for name, options in CASES:
        ours = activation(name, options)
        for kink in ours.kinks:
            near = np.array([kink - 1e-3, kink + 1e-3])
            jumps = np.abs(np.diff(ours.slope(near))) + np.abs(np.diff(ours.value(near)))
            assert jumps > 1e-3, f"{name} is smooth at {kink}"


def test_an_unknown_name_is_told_with_near_ones() -> None:
    with pytest.raises(ArgumentError, match=r"got 'Relu'. Try ReLU"):
        activation("Relu")


def test_an_unknown_option_is_told_with_those_there_are() -> None:
    with pytest.raises(ArgumentError, match=r"GELU takes the options approximate; got exact"):
        activation("GELU", {"exact": True})
    with pytest.raises(ArgumentError, match="'none' or 'tanh'; got 'erf'"):
        activation("GELU", {"approximate": "erf"})


def test_the_sigmoid_is_exact_at_both_ends() -> None:
    assert sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist() == [0.0, 0.5, 1.0]
