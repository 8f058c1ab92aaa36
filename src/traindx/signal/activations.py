"""torch's elementwise activations and their slopes, in float64 NumPy.

Each is known by the name of its torch module and takes that module's options. The slope is the
derivative almost everywhere, as autograd has it: what jumps (`Hardshrink`, `Threshold`) has no
slope where it jumps.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from traindx.errors import ArgumentError
from traindx.messages import listed, say

Array = NDArray[np.float64]
_Function = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Activation:
    """A function of one number.

    Attributes:
        name: Name of the torch module.
        value: The function, elementwise.
        slope: Its derivative, elementwise.
        kinks: Where either is not smooth: an integral over them is taken in pieces.
    """

    name: str
    value: _Function
    slope: _Function
    kinks: tuple[float, ...] = ()


def activation(name: str, options: Mapping[str, object] | None = None) -> Activation:
    """The activation of this name.

    Args:
        name: Name of the torch module, such as "GELU".
        options: Its settings, such as {"approximate": "tanh"}; others than it knows are an error.

    Raises:
        ArgumentError: There is none of this name, or it does not take these options.
    """
    if name not in _MAKERS:
        near = get_close_matches(name, _MAKERS, 3, 0.5) or sorted(_MAKERS)
        raise ArgumentError(
            say(
                "An activation is named like its torch module; got {name}. Try {near}.",
                name=repr(name),
                near=listed(near),
            )
        )
    try:
        return _made(name, tuple(sorted((options or {}).items())))
    except TypeError as error:
        taken = [*inspect.signature(_MAKERS[name]).parameters] or ["-"]
        raise ArgumentError(
            say(
                "{name} takes the options {taken}; got {given}.",
                name=name,
                taken=listed(taken),
                given=listed([*(options or {})]),
            )
        ) from error


@lru_cache(maxsize=256)
def _made(name: str, options: tuple[tuple[str, object], ...]) -> Activation:
    """Once for the same options, so that what is equal is the same."""
    return _MAKERS[name](**dict(options))


def names() -> list[str]:
    """Every activation there is."""
    return sorted(_MAKERS)


# -- straight pieces ------------------------------------------------------------------------------


def _identity() -> Activation:
    return Activation("Identity", lambda x: x, np.ones_like)


def _leaky(name: str, below: float) -> Activation:
    return Activation(
        name,
        lambda x: np.where(x > 0, x, below * x),
        lambda x: np.where(x > 0, 1.0, below),
        (0.0,),
    )


def _relu() -> Activation:
    return _leaky("ReLU", 0.0)


def _leaky_relu(negative_slope: float = 0.01) -> Activation:
    return _leaky("LeakyReLU", negative_slope)


def _prelu(weight: float = 0.25) -> Activation:
    return _leaky("PReLU", weight)


def _clip(x: Array, low: float, high: float) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _clipped(name: str, low: float, high: float) -> Activation:
    return Activation(
        name,
        lambda x: _clip(x, low, high),
        lambda x: np.where((x > low) & (x < high), 1.0, 0.0),
        (low, high),
    )


def _relu6() -> Activation:
    return _clipped("ReLU6", 0.0, 6.0)


def _hardtanh(min_val: float = -1.0, max_val: float = 1.0) -> Activation:
    return _clipped("Hardtanh", min_val, max_val)


def _hardsigmoid() -> Activation:
    return Activation(
        "Hardsigmoid",
        lambda x: _clip(x / 6 + 0.5, 0.0, 1.0),
        lambda x: np.where(np.abs(x) < 3, 1 / 6, 0.0),
        (-3.0, 3.0),
    )


def _hardswish() -> Activation:
    return Activation(
        "Hardswish",
        lambda x: x * _clip(x / 6 + 0.5, 0.0, 1.0),
        lambda x: np.where(np.abs(x) < 3, x / 3 + 0.5, np.where(x >= 3, 1.0, 0.0)),
        (-3.0, 3.0),
    )


def _threshold(threshold: float, value: float) -> Activation:
    return Activation(
        "Threshold",
        lambda x: np.where(x > threshold, x, value),
        lambda x: np.where(x > threshold, 1.0, 0.0),
        (threshold,),
    )


def _hardshrink(lambd: float = 0.5) -> Activation:
    return Activation(
        "Hardshrink",
        lambda x: np.where(np.abs(x) > lambd, x, 0.0),
        lambda x: np.where(np.abs(x) > lambd, 1.0, 0.0),
        (-lambd, lambd),
    )


def _softshrink(lambd: float = 0.5) -> Activation:
    return Activation(
        "Softshrink",
        lambda x: np.sign(x) * np.maximum(np.abs(x) - lambd, 0.0),
        lambda x: np.where(np.abs(x) > lambd, 1.0, 0.0),
        (-lambd, lambd),
    )


# -- exponentials ---------------------------------------------------------------------------------


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), elementwise, without overflow."""
    grown = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, grown) / (1 + grown)


def _softplus_of(x: Array) -> Array:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _bent(name: str, scale: float, alpha: float, width: float) -> Activation:
    """`scale` times: x above 0, alpha (exp(x / width) - 1) below."""
    return Activation(
        name,
        lambda x: scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0) / width)),
        lambda x: scale * np.where(x > 0, 1.0, alpha / width * np.exp(np.minimum(x, 0.0) / width)),
        (0.0,),
    )


def _elu(alpha: float = 1.0) -> Activation:
    return _bent("ELU", 1.0, alpha, 1.0)


def _celu(alpha: float = 1.0) -> Activation:
    return _bent("CELU", 1.0, alpha, alpha)


def _selu() -> Activation:
    # Klambauer et al. 2017, "Self-Normalizing Neural Networks", eq. 14.
    return _bent("SELU", 1.0507009873554804934193349852946, 1.6732632423543772848170429916717, 1.0)


def _sigmoid() -> Activation:
    return Activation("Sigmoid", sigmoid, lambda x: sigmoid(x) * sigmoid(-x))


def _log_sigmoid() -> Activation:
    return Activation("LogSigmoid", lambda x: -_softplus_of(-x), lambda x: sigmoid(-x))


def _softplus(beta: float = 1.0, threshold: float = 20.0) -> Activation:
    return Activation(
        "Softplus",
        lambda x: np.where(beta * x > threshold, x, _softplus_of(beta * x) / beta),
        lambda x: np.where(beta * x > threshold, 1.0, sigmoid(beta * x)),
        (threshold / beta,),
    )


def _silu() -> Activation:
    return Activation(
        "SiLU",
        lambda x: x * sigmoid(x),
        lambda x: sigmoid(x) * (1 + x * sigmoid(-x)),
    )


def _mish_slope(x: Array) -> Array:
    gate = np.tanh(_softplus_of(x))
    return gate + x * (1 - gate**2) * sigmoid(x)


def _mish() -> Activation:
    return Activation("Mish", lambda x: x * np.tanh(_softplus_of(x)), _mish_slope)


def _tanh() -> Activation:
    return Activation("Tanh", np.tanh, lambda x: 1 - np.tanh(x) ** 2)


def _tanhshrink() -> Activation:
    return Activation("Tanhshrink", lambda x: x - np.tanh(x), lambda x: np.tanh(x) ** 2)


def _softsign() -> Activation:
    return Activation(
        "Softsign",
        lambda x: x / (1 + np.abs(x)),
        lambda x: 1 / (1 + np.abs(x)) ** 2,
        (0.0,),
    )


# -- the Gaussian error linear unit ---------------------------------------------------------------


def _erfc(x: Array) -> Array:
    flat = np.fromiter(map(math.erfc, x.ravel().tolist()), np.float64, x.size)
    return np.reshape(flat, x.shape)


def _normal_cdf(x: Array) -> Array:
    return _erfc(-x / math.sqrt(2)) / 2


def _gelu_slope(x: Array) -> Array:
    return _normal_cdf(x) + x * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def _gelu_gate(x: Array) -> Array:
    return np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def _gelu_tanh_slope(x: Array) -> Array:
    gate = _gelu_gate(x)
    inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    return 0.5 * (1 + gate) + 0.5 * x * (1 - gate**2) * inner


def _gelu(approximate: str = "none") -> Activation:
    # Hendrycks & Gimpel 2016, "Gaussian Error Linear Units", sec. 2.
    if approximate == "none":
        return Activation("GELU", lambda x: x * _normal_cdf(x), _gelu_slope)
    if approximate == "tanh":
        return Activation("GELU", lambda x: 0.5 * x * (1 + _gelu_gate(x)), _gelu_tanh_slope)
    raise ArgumentError(
        say(
            "GELU's `approximate` is 'none' or 'tanh'; got {given}.",
            given=repr(approximate),
        )
    )


_MAKERS: dict[str, Callable[..., Activation]] = {
    "CELU": _celu,
    "ELU": _elu,
    "GELU": _gelu,
    "Hardshrink": _hardshrink,
    "Hardsigmoid": _hardsigmoid,
    "Hardswish": _hardswish,
    "Hardtanh": _hardtanh,
    "Identity": _identity,
    "LeakyReLU": _leaky_relu,
    "LogSigmoid": _log_sigmoid,
    "Mish": _mish,
    "PReLU": _prelu,
    "ReLU": _relu,
    "ReLU6": _relu6,
    "SELU": _selu,
    "SiLU": _silu,
    "Sigmoid": _sigmoid,
    "Softplus": _softplus,
    "Softshrink": _softshrink,
    "Softsign": _softsign,
    "Tanh": _tanh,
    "Tanhshrink": _tanhshrink,
    "Threshold": _threshold,
}
