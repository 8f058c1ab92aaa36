"""Tensors as they lie in memory: in order, in blocks, and in samples of about 4,096 elements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SAMPLE = 4096
"""Elements looked at one by one, per tensor."""

BLOCK = 1 << 17
"""Elements taken at once on the CPU: its second-level cache holds them from one sum to the next."""

_STRETCHES, _LENGTH = 32, 512
"""How many stretches of a long tensor are looked at, about, and elements of each."""

_SAMPLES, _FEATURES = 128, 32
"""How many samples of a batch, and entries of each, are looked at, about."""

_Flat = TypeVar("_Flat", bound=Any)
Array = NDArray[Any]


class _Memory:
    """A tensor as NumPy asks for it."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor  # an array keeps this, and so its memory
        size = tensor.element_size()
        self.__array_interface__ = {
            "version": 3,
            "typestr": _type_in_numpy(tensor.dtype),
            "shape": tuple(tensor.shape),
            "strides": tuple([stride * size for stride in tensor.stride()]),
            "data": (tensor.data_ptr(), False),
        }


@cache
def _type_in_numpy(dtype: torch.dtype) -> str:
    alike: Array = torch.empty(0, dtype=dtype, device="cpu").numpy()
    return cast(Any, alike).dtype.str


def in_numpy(tensor: Tensor) -> Array:
    """The very memory of a tensor on the CPU, without its history.

    `Tensor.numpy` gives it as well, but its storage can never be resized again then, as a program
    may do that frees the memory of parameters.
    """
    assert tensor.is_cpu
    return np.asarray(_Memory(tensor))


def wide(tensor: Tensor, least: int = 4) -> Tensor:
    """The tensor in float32, if its elements have fewer bytes than `least`."""
    return tensor if tensor.element_size() >= least else tensor.float()


def in_memory_order(tensor: Tensor) -> Tensor:
    """A view of each element once, contiguous if it is dense in any order of its dimensions."""
    if tensor.is_neg():  # as an imaginary part of a conjugate: it is stored with the other sign
        tensor = tensor.resolve_neg()
    if tensor.is_contiguous():
        return tensor
    tensor = once(tensor)
    return tensor.permute(sorted(range(tensor.dim()), key=lambda dim: -tensor.stride(dim)))


def once(tensor: Tensor) -> Tensor:
    """A view of each element once: to flatten an expanded tensor would write out all of it."""
    for dim, stride in enumerate(tensor.stride()):
        tensor = tensor.narrow(dim, 0, 1) if stride == 0 else tensor
    return tensor


def pieces(values: Tensor, size: int) -> Iterator[Tensor]:
    """The values in views of at most so many elements each."""
    if values.numel() <= size:
        yield values
    elif values.is_contiguous():
        yield from split(values.view(-1), size)
    elif (rows := size * values.shape[0] // values.numel()) > 0:
        yield from split(values, rows)
    else:
        for row in values.unbind():
            yield from pieces(row, size)


def split(values: Tensor, size: int) -> tuple[Tensor, ...]:
    """The values in views of so many rows each; the last may have fewer."""
    return cast(Any, values).split(size)


# -- samples --------------------------------------------------------------------------------------


def sampled(flat: _Flat, shape: torch.Size, start: int = 0) -> _Flat:
    """About 4,096 elements as a view, with a stride coprime to every extent.

    A stride that divides an extent would read the same few columns again and again.

    Args:
        flat: One-dimensional tensor or array.
        shape: The extents it had before it was flattened.
        start: Moves the sample.
    """
    stride = coprime(max(1, math.prod(shape) // SAMPLE), shape)
    return flat[start % stride :: stride]


def stretches(flat: Array, start: int) -> Array:
    """About 16,384 elements of a long array as a view: (about 32, 512), at even distances.

    So many in a row are read at the speed of memory, which one here and one there are not.

    Args:
        flat: One-dimensional, of more than 32,768 elements.
        start: Moves the stretches.
    """
    size, width = flat.size, flat.itemsize
    apart = size // _STRETCHES | 1  # odd, as extents are mostly not
    first = start * _LENGTH % (apart - _LENGTH)
    shape = ((size - first - _LENGTH) // apart + 1, _LENGTH)
    return np.ndarray(shape, flat.dtype, flat, first * width, (apart * width, width))


def strided(flat: Array, first: int, apart: int, length: int) -> Array:
    """Stretches of an array as a view, (n, length), so far apart."""
    count = (flat.size - first - length) // apart + 1
    width = flat.itemsize
    return np.ndarray((count, length), flat.dtype, flat, first * width, (apart * width, width))


def sample(values: Tensor, start: int) -> Tensor:
    """The same of a tensor of any strides."""
    if values.is_contiguous() or values.numel() <= BLOCK:
        return sampled(values.reshape(-1), values.shape, start)
    stride = coprime(values.numel() // SAMPLE, values.shape)
    places = torch.arange(start % stride, values.numel(), stride, device=values.device)
    indices: list[Tensor] = []
    for extent in reversed(values.shape):
        indices.insert(0, places % extent)
        places = places.div(extent, rounding_mode="floor")
    return values[tuple(indices)]


def batch_sample(tensor: Tensor, start: int) -> Tensor:
    """Some entries of some samples of a batch: (up to 128, about 32), of the tensor's type.

    Args:
        tensor: (samples, ...); measurable.
        start: Moves the sample of entries.
    """
    batch = tensor[:: -(-tensor.shape[0] // _SAMPLES)]
    if batch.stride(0):
        batch = once(batch)
    order = sorted(range(1, batch.dim()), key=lambda dim: -batch.stride(dim))
    rows = batch.permute(0, *order).reshape(batch.shape[0], -1)  # a view if dense
    stride = coprime(max(1, rows.shape[1] // _FEATURES), batch.shape[1:])
    return rows[:, start % stride :: stride].resolve_neg()


@lru_cache(maxsize=1024)
def coprime(stride: int, shape: torch.Size) -> int:
    """The least stride from this one on that is coprime to every extent."""
    while stride > 1 and any(math.gcd(stride, extent) > 1 for extent in shape if extent > 1):
        stride += 1
    return stride
