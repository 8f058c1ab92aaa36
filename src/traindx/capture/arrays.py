"""Tensors on the CPU as NumPy's arrays: there a small operation costs a fifth of what torch's does.

A collector that works on many small tensors takes this way where nothing has to be waited for.
"""

from __future__ import annotations

from typing import Any, cast

from numpy.typing import NDArray
from torch import Tensor

from traindx.stats.memory import coprime, in_memory_order, sampled, strided

Array = NDArray[Any]


def on_host(tensor: Tensor) -> bool:
    """Whether to read it makes nobody wait."""
    return tensor.is_cpu


def array(tensor: Tensor) -> Array:
    """A view of a measurable tensor on the CPU in float32 or float64; of a narrower one a copy."""
    tensor = tensor.detach()
    if tensor.element_size() < 4:
        tensor = tensor.float()
    return (tensor.resolve_neg() if tensor.is_neg() else tensor).numpy()


def numbers(values: Array) -> list[float]:
    """An array's elements as floats."""
    return cast("list[float]", values.tolist())


def sample(tensor: Tensor) -> Tensor:
    """About 4,096 elements, (n,): always the same ones, as a view if its memory has no gaps."""
    return sampled(in_memory_order(tensor.detach()).reshape(-1), tensor.shape)


_FEW, _TOGETHER = 2048, 16
"""Elements looked at of a large tensor on the CPU, about, and how many of them in a row: to fetch
one from memory brings its neighbours."""


def sample_on_host(tensor: Tensor) -> Array:
    """About 2,048 to 4,096 elements of a tensor on the CPU, of any shape: always the same ones.

    A view if its memory has no gaps.
    """
    if tensor.element_size() < 4 or not tensor.is_contiguous() or tensor.is_neg():
        return array(sample(tensor))
    values = tensor.detach().numpy()
    size = values.size
    if size <= 2 * _FEW:
        return values
    return strided(values, 0, coprime(size // _FEW * _TOGETHER, tensor.shape), _TOGETHER)
