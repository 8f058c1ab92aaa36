"""What theory takes a torch module for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]
from torch.nn.modules.conv import (
    _ConvNd,  # pyright: ignore[reportPrivateUsage]
    _ConvTransposeNd,  # pyright: ignore[reportPrivateUsage]
)
from torch.nn.modules.dropout import _DropoutNd  # pyright: ignore[reportPrivateUsage]

from traindx.messages import say
from traindx.preflight.measures import signal_of
from traindx.signal import layers
from traindx.signal.activations import activation, names
from traindx.signal.layers import Layer

_OPTIONS: dict[str, tuple[str, ...]] = {
    "CELU": ("alpha",),
    "ELU": ("alpha",),
    "GELU": ("approximate",),
    "Hardshrink": ("lambd",),
    "Hardtanh": ("min_val", "max_val"),
    "LeakyReLU": ("negative_slope",),
    "Softplus": ("beta", "threshold"),
    "Softshrink": ("lambd",),
    "Threshold": ("threshold", "value"),
}
_EXACT = 512
"""Rows or columns of a matrix up to which its singular values are computed: their cost is cubic."""

_PASSING = (nn.Flatten, nn.Unflatten, nn.Identity)


def layer_of(module: nn.Module, given: Tensor, made: Tensor) -> Layer | str:
    """The layer that theory takes a module for, or why it has nothing to say.

    Args:
        module: A module of torch's, or of a class derived from one that computes the same.
        given: Its input.
        made: Its output.
    """
    kind = type(module)
    if isinstance(module, _PASSING):
        return layers.Passed()
    if kind.__module__ == "torch.nn.modules.pooling" and "Pool" in kind.__name__:
        before, after = signal_of(given), signal_of(made)
        if before.usable and after.usable:
            return layers.Pooled(before, after)
    if isinstance(module, nn.Linear) and kind.forward is nn.Linear.forward:
        layer = _weighted(module, module.in_features, module.out_features)
        return replace(layer, spectral_norm=_spectral_bound(module.weight))
    if isinstance(module, _ConvNd):
        return _convolution(module, given, made)
    if isinstance(module, _DropoutNd) and "Alpha" not in kind.__name__:
        return layers.Dropped(module.p) if module.training else layers.Passed()
    if isinstance(module, _BatchNorm):
        return _batch_norm(module)
    if isinstance(module, nn.LayerNorm | nn.RMSNorm | nn.GroupNorm):
        return _layer_norm(module)
    if kind.__module__ == "torch.nn.modules.activation" and kind.__name__ in names():
        return _elementwise(module, kind.__name__)
    return say("theory has no formula for {kind}", kind=kind.__name__)


def _elementwise(module: nn.Module, name: str) -> Layer | str:
    options = {key: getattr(module, key) for key in _OPTIONS.get(name, ())}
    if isinstance(module, nn.PReLU):
        slopes = module.weight.detach().double()
        if float(slopes.min()) != float(slopes.max()):
            return say("PReLU has a slope for each channel")
        options = {"weight": float(slopes.mean())}
    return layers.Elementwise(activation(name, options))


# -- weights --------------------------------------------------------------------------------------


def _mean_square(tensor: Tensor | None, absent: float) -> float:
    return absent if tensor is None else float(tensor.detach().double().square().mean())


def _weighted(module: nn.Module, fan_in: float, fan_out: float) -> layers.Weighted:
    weight = cast(Tensor, module.weight)
    bias = cast("Tensor | None", module.bias)
    mean = 0.0 if bias is None else float(bias.detach().double().mean())
    return layers.Weighted(
        fan_in, fan_out, _mean_square(weight, 0.0), _mean_square(bias, 0.0), mean
    )


def _spectral_bound(weight: Tensor) -> float | None:
    """The greatest factor by which a matrix stretches a vector, or of a large one, one above it."""
    matrix = weight.detach().double()
    if not matrix.numel() or not bool(matrix.isfinite().all()):
        return None
    if min(matrix.shape) <= _EXACT:
        return float(cast(Any, torch.linalg).matrix_norm(matrix, 2))
    # Horn & Johnson 2013, "Matrix Analysis", 5.6.P21: |W|^2 <= |W|_1 |W|_inf.
    sizes = matrix.abs()
    return math.sqrt(float(sizes.sum(0).max()) * float(sizes.sum(1).max()))


def _convolution(module: _ConvNd, given: Tensor, made: Tensor) -> Layer | str:
    if module.padding_mode != "zeros":
        return say("its border is not padded with zeros")
    spatial = len(module.kernel_size)
    inner, outer = given.shape[-spatial:], made.shape[-spatial:]
    if isinstance(module, _ConvTransposeNd):  # the same pairs, seen from the other side
        pairs = _pairs(module, outer, inner)
    else:
        pairs = _pairs(module, inner, outer)
    fan_in = module.in_channels / module.groups * pairs / math.prod(outer)
    fan_out = module.out_channels / module.groups * pairs / math.prod(inner)
    return _weighted(module, fan_in, fan_out)


def _pairs(module: _ConvNd, wide: Sequence[int], narrow: Sequence[int]) -> int:
    """How many pairs of a place of the wide side and one of the narrow a kernel joins."""
    before = _padding(module)
    each = zip(
        wide, narrow, module.kernel_size, module.stride, module.dilation, before, strict=True
    )
    return math.prod(
        sum(_reaching(tap * dilation - pad, stride, places, extent) for tap in range(size))
        for extent, places, size, stride, dilation, pad in each
    )


def _reaching(offset: int, stride: int, places: int, extent: int) -> int:
    """How many of the places p have 0 <= p * stride + offset < extent."""
    first = max(0, -(offset // stride))
    last = min(places - 1, (extent - 1 - offset) // stride)
    return max(0, last - first + 1)


def _padding(module: _ConvNd) -> tuple[int, ...]:
    """Zeros before the first element, by dimension."""
    if module.padding == "same":
        spans = zip(module.kernel_size, module.dilation, strict=True)
        return tuple(dilation * (size - 1) // 2 for size, dilation in spans)
    if module.padding == "valid":
        return (0,) * len(module.kernel_size)
    return cast("tuple[int, ...]", module.padding)


# -- normalization --------------------------------------------------------------------------------


def _batch_norm(module: _BatchNorm) -> Layer | str:
    if not module.training and module.running_mean is not None:
        return say("in evaluation it maps by its running statistics")
    weight, bias = _affine(module)
    return layers.BatchNormalized(module.eps, weight, bias)


def _layer_norm(module: nn.LayerNorm | nn.RMSNorm | nn.GroupNorm) -> Layer | str:
    weight, bias = _affine(module)
    centred = not isinstance(module, nn.RMSNorm)
    if isinstance(module, nn.GroupNorm) and module.num_groups == module.num_channels:
        return say("it normalizes each channel over space, and neighbours are alike")
    eps = torch.finfo(torch.float32).eps if module.eps is None else module.eps
    return layers.LayerNormalized(eps, centred, weight, bias)


def _affine(module: Any) -> tuple[float, float]:
    """Mean squares of weight and bias."""
    return _mean_square(module.weight, 1.0), _mean_square(getattr(module, "bias", None), 0.0)
