"""Tensors on the CPU as NumPy's arrays: there a small operation costs a fifth of what torch's does.

A collector that works on many small tensors takes this way where nothing has to be waited for.
"""

from __future__ import annotations

from collections.abc import Hashable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
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
    if not _is_plain(tensor):
        return array(sample(tensor))
    values = tensor.detach().numpy()
    size = values.size
    if size <= 2 * _FEW:
        return values
    return strided(values, 0, coprime(size // _FEW * _TOGETHER, tensor.shape), _TOGETHER)


class Samples:
    """`sample_on_host` of tensors with names, at the cost of one look at where each of them lies.

    To make a view takes longer than to read it. So the view is remembered, though not the memory:
    it holds none, and is given out only while the tensor at hand lies in that very place.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[object, Array]] = {}

    def of(self, name: Hashable, tensor: Tensor) -> Array:
        """The sample of a tensor, not to be read once the tensor may be gone."""
        if not _is_plain(tensor):
            return sample_on_host(tensor)
        place = tensor.data_ptr(), tensor.shape, tensor.dtype
        known = self._known.get(name)
        if known is None or known[0] != place:
            known = self._known[name] = place, _holding_nothing(sample_on_host(tensor))
        return known[1]


def _is_plain(tensor: Tensor) -> bool:
    """Whether its elements lie one after another, each as NumPy can read it."""
    return tensor.element_size() >= 4 and tensor.is_contiguous() and not tensor.is_neg()


def _holding_nothing(view: Array) -> Array:
    """A view of the same memory, which it does not keep alive."""
    return np.asarray(SimpleNamespace(__array_interface__=view.__array_interface__))
