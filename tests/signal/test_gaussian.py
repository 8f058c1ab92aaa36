"""Gaussian expectations against mpmath's adaptive quadrature, closed forms, and sampling."""

import math
from collections.abc import Callable
from typing import Any, cast

import mpmath as mp
import numpy as np
import pytest
import torch

from traindx.errors import ArgumentError
from traindx.signal.activations import activation, names
from traindx.signal.gaussian import moments, shared

mp.mp.dps = 24
Function = Callable[[mp.mpf], mp.mpf]


# Written from the definitions, apart from `traindx.signal.activations`.
TWINS: dict[str, Function] = {
    "ReLU": lambda x: max(x, mp.mpf(0)),
    "GELU": lambda x: x * mp.ncdf(x),
    "SiLU": lambda x: x / (1 + mp.exp(-x)),
    "Mish": lambda x: x * mp.tanh(mp.log1p(mp.exp(x))),
    "Tanh": mp.tanh,
    "Sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "Softplus": lambda x: mp.log1p(mp.exp(x)),  # torch: x above 20, 2e-9 off,
    "ELU": lambda x: x if x > 0 else mp.expm1(x),
    "Hardtanh": lambda x: min(max(x, mp.mpf(-1)), mp.mpf(1)),
    "Hardswish": lambda x: x * min(max(x / 6 + mp.mpf(1) / 2, mp.mpf(0)), mp.mpf(1)),
}


def _expectation(function: Function, variance: float, mean: float) -> float:
    std = mp.sqrt(variance)
    bends = [(mp.mpf(bend) - mean) / std for bend in (-30, -9, -3, -1, 0, 1, 3, 9, 30)]
    ends = sorted({mp.mpf(k) for k in range(-14, 15, 4)} | {b for b in bends if abs(b) < 14})
    return float(cast(Any, mp.quad(lambda u: function(mean + std * u) * mp.npdf(u), ends)))


@pytest.mark.parametrize("name", TWINS)
def test_moments_are_right_to_ten_digits(name: str) -> None:
    twin, variance, mean = TWINS[name], 0.7, -0.3
    made = moments(activation(name), variance, mean)
    assert made.mean == pytest.approx(_expectation(twin, variance, mean), rel=1e-10)
    square = _expectation(lambda x: twin(x) ** 2, variance, mean)
    assert made.mean_square == pytest.approx(square, rel=1e-10)


KINKS = [-3.0, -1.0, -0.5, 0.0, 0.1, 0.5, 1.0, 3.0, 6.0, 20.0]


def _of_torch(module: torch.nn.Module, variance: float, mean: float) -> list[float]:
    """The moments by torch's own function and derivative, and ten thousand panels of a rule."""
    std, point = math.sqrt(variance), math.sqrt(0.6)
    kinks = [(kink - mean) / std for kink in KINKS]
    ends = np.unique([*np.linspace(-12, 12, 10_000), *(k for k in kinks if abs(k) < 12)])
    half, center = np.diff(ends)[:, None] / 2, (ends[1:, None] + ends[:-1, None]) / 2
    u = center + half * np.array([-point, 0, point])  # Gauss-Legendre of three nodes
    weights = half * np.array([5, 8, 5]) / 9 * np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    x = torch.tensor(mean + std * u).requires_grad_()
    value = module.double()(x)
    (slope,) = torch.autograd.grad(value.sum(), x)
    arrays = [made.detach().numpy() for made in (value, value**2, slope**2)]
    return [float((weights * array).sum()) for array in arrays]


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize(("variance", "mean"), [(1.0, 0.0), (0.04, -0.7), (400.0, 3.0)])
def test_moments_are_those_of_torchs_own_functions(name: str, variance: float, mean: float) -> None:
    options = {"threshold": 0.1, "value": 0.5} if name == "Threshold" else {}
    wanted = _of_torch(getattr(torch.nn, name)(**options), variance, mean)
    made = moments(activation(name, options), variance, mean)
    found = [made.mean, made.mean_square, made.slope_square]
    # torch's derivative of Hardsigmoid is 1/6 rounded to float32 even of float64.
    rounding = 1e-7 if name == "Hardsigmoid" else 1e-10
    assert found == pytest.approx(wanted, rel=rounding, abs=1e-10)


@pytest.mark.parametrize(
    ("name", "mean_square", "slope_square"),
    [
        # The table of facts on unit pre-activations, to its three digits.
        ("GELU", 0.425, 0.456),
        ("SiLU", 0.356, 0.379),
        ("Mish", 0.452, 0.479),
        ("ELU", 0.645, 0.668),
        ("SELU", 1.000, 1.072),
        ("Tanh", 0.394, 0.464),
        ("Sigmoid", 0.293, 0.045),
        ("Softplus", 0.921, 0.293),
        ("Hardswish", 0.332, 0.359),
    ],
)
def test_known_constants_are_met(name: str, mean_square: float, slope_square: float) -> None:
    made = moments(activation(name), 1.0)
    assert made.mean_square == pytest.approx(mean_square, abs=6e-4)
    assert made.slope_square == pytest.approx(slope_square, abs=6e-4)


@pytest.mark.parametrize("c", [-1.0, -0.6, 0.0, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("variance", [0.01, 1.0, 50.0])
def test_what_two_relus_share_is_the_arc_cosine_kernel(c: float, variance: float) -> None:
    # Cho & Saul 2009, eq. 6.
    kernel = (math.sqrt(1 - c * c) + c * (math.pi - math.acos(c))) / (2 * math.pi)
    assert shared(activation("ReLU"), variance, c * variance) == pytest.approx(
        variance * kernel, rel=1e-10, abs=1e-14
    )


def test_what_two_gelus_share_is_found_by_sampling() -> None:
    rng = np.random.default_rng(0)
    z, u, v = rng.normal(size=(3, 2_000_000))
    c, gelu = 0.4, activation("GELU")
    x, y = (math.sqrt(c) * z + math.sqrt(1 - c) * own for own in (u, v))
    product = gelu.value(x) * gelu.value(y)
    error = product.std() / math.sqrt(product.size)
    assert abs(shared(gelu, 1.0, c) - product.mean()) < 5 * error


def test_of_a_certain_number_the_moments_are_its_own() -> None:
    made = moments(activation("Tanh"), 0.0, 0.5)
    assert made.mean == math.tanh(0.5)
    assert made.mean_square == math.tanh(0.5) ** 2


@pytest.mark.parametrize(
    ("variance", "mean"), [(-1.0, 0.0), (math.inf, 0.0), (math.nan, 0.0), (1.0, math.nan)]
)
def test_what_is_no_gaussian_is_refused(variance: float, mean: float) -> None:
    with pytest.raises(ArgumentError, match="a finite variance of at least 0"):
        moments(activation("ReLU"), variance, mean)
