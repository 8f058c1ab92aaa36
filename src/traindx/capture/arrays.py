"""Tensors on the CPU as NumPy's arrays: there a small operation costs a fifth of what torch's does.

A collector that works on many small tensors takes this way where nothing has to be waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from traindx.stats.memory import coprime, in_memory_order, in_numpy, sampled, strided
from traindx.stats.samples import TOGETHER, Samples

Array = NDArray[Any]
_Place = tuple[object, ...]
"""Where a tensor lies, and how."""


def on_host(tensor: Tensor) -> bool:
    """Whether to read it makes nobody wait."""
    return tensor.is_cpu


def array(tensor: Tensor) -> Array:
    """A view of a measurable tensor on the CPU in float32 or float64; of a narrower one a copy."""
    tensor = tensor.detach()
    if tensor.element_size() < 4:
        tensor = tensor.float()
    return in_numpy(tensor.resolve_neg() if tensor.is_neg() else tensor)


def numbers(values: Array) -> list[float]:
    """An array's elements as floats."""
    return cast("list[float]", values.tolist())


def sample(tensor: Tensor) -> Tensor:
    """About 4,096 elements, (n,): always the same ones, as a view if its memory has no gaps."""
    return sampled(in_memory_order(tensor.detach()).reshape(-1), tensor.shape)


_FEW = 2048
"""Elements looked at of a large tensor on the CPU, about, several in a row: to fetch one from
memory brings its neighbours."""


def sample_on_host(tensor: Tensor) -> Array:
    """About 2,048 to 4,096 elements of a tensor on the CPU, of any shape: always the same ones.

    A view if its memory has no gaps.
    """
    if not _is_plain(tensor):
        return array(sample(tensor))
    values = in_numpy(tensor)
    size = values.size
    if size <= 2 * _FEW:
        return values
    return strided(values, 0, coprime(size // _FEW * TOGETHER, tensor.shape), TOGETHER)


class Arrays(NamedTuple):
    """Several arrays, and what reads them as one, if that can be."""

    each: Sequence[Array]
    samples: Samples | None

    def copy_to(self, room: Any) -> None:
        """Write all elements, one after another, in float64."""
        if self.samples is None:
            np.concatenate(self.each, axis=None, out=np.frombuffer(room))
        else:
            self.samples.moved(room)


_NAMES = 256
"""Names whose views are remembered: those of models that are gone must not add up."""


class Views:
    """Arrays of several tensors with a name, at the cost of one look at where each of them lies.

    To make a view takes longer than to read it. So the views are remembered, though not the memory:
    they hold none, and are given out only while the tensors at hand lie in those very places.

    Args:
        make: Gives the array of a tensor, a view if the tensor's memory has no gaps.
    """

    def __init__(self, make: Callable[[Tensor], Array] = sample_on_host) -> None:
        self._make = make
        self._known: dict[Hashable, tuple[list[_Place], Arrays]] = {}

    def of(self, name: Hashable, tensors: Sequence[Tensor]) -> Arrays:
        """The array of each tensor, not to be read once the tensor may be gone."""
        places: list[_Place] = [
            (t.data_ptr(), t.shape, t.dtype, t.is_contiguous(), t.is_neg()) for t in tensors
        ]
        known = self._known.get(name)
        if known is not None and known[0] == places:
            return known[1]
        made = [self._make(tensor) for tensor in tensors]
        pairs = zip(tensors, made, strict=True)
        if not all(_is_plain(tensor) and view.size for tensor, view in pairs):
            return Arrays(made, None)  # that of another may be a copy, or there is nothing to view
        views = [_holding_nothing(view) for view in made]
        arrays = Arrays(views, Samples.of(views))
        if len(self._known) >= _NAMES and name not in self._known:  # the oldest goes
            del self._known[next(iter(self._known))]
        self._known[name] = places, arrays
        return arrays


def _is_plain(tensor: Tensor) -> bool:
    """Whether its elements lie one after another, each as NumPy can read it."""
    return tensor.element_size() >= 4 and tensor.is_contiguous() and not tensor.is_neg()


def _holding_nothing(view: Array) -> Array:
    """A view of the same memory, which it does not keep alive."""
    return np.asarray(SimpleNamespace(__array_interface__=view.__array_interface__))
