"""Batches that data loaders give: how far into the data they come, and whether they begin alike."""

from __future__ import annotations

import functools
import hashlib
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.data import IterableDataset
from torch.utils.data.dataloader import (
    _BaseDataLoaderIter,  # pyright: ignore[reportPrivateUsage]
)

from traindx.capture.arrays import on_host, sample
from traindx.capture.guard import apart
from traindx.capture.replacing import replace
from traindx.records import Scalar
from traindx.stats.memory import in_numpy

_MOST = 32
"""Data sets that are followed."""
_TENSORS = 8
"""Of a batch, those by which it is known."""


@dataclass(slots=True)
class _Passes:
    """The passes over a data set.

    Attributes:
        dataset: It.
        batches: How many it has; None if that is not known.
        begun: Passes that were begun.
        repeats: Passes whose first batch was that of the pass before.
        given: Batches in all.
        furthest: Batches of the longest pass.
        exhausted: Whether a pass came to the end.
        first: The first batch of the last pass, as a hash; None if it cannot be told.
    """

    dataset: weakref.ref[Any]
    batches: int | None
    begun: int = 0
    repeats: int = 0
    given: int = 0
    furthest: int = 0
    exhausted: bool = False
    first: bytes | None = None

    @property
    def reached(self) -> float:
        """The part of the data that the longest pass came to; 0 of data without an end."""
        if self.exhausted:
            return 1.0
        return self.furthest / self.batches if self.batches else 0.0


class Drawn:
    """Listens to data loaders while gradients are enabled.

    Args:
        told: Told of the pass and of a batch, or of None at the end of the pass.
    """

    def __init__(self, told: Callable[[Any, Any], None]) -> None:
        self._told = told
        self._undo: Callable[[], None] | None = None
        self._passes: dict[int, _Passes] = {}

    def install(self) -> None:
        """Begin to listen."""
        self._undo = replace(_BaseDataLoaderIter, "__next__", self._next)

    def remove(self) -> None:
        """Stop listening."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def _next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        told = self._told

        @functools.wraps(original)
        def following(iterator: Any) -> Any:
            try:
                batch = original(iterator)
            except StopIteration:
                told(iterator, None)
                raise
            told(iterator, batch)
            return batch

        return following

    def note(self, iterator: Any, batch: Any) -> None:
        """A pass has given a batch, or None as it ended."""
        if not torch.is_grad_enabled():
            return
        passes = self._of(iterator)
        if passes is None:
            return
        if batch is None:
            passes.exhausted = True
            return
        place = int(iterator._num_yielded)
        passes.given += 1
        passes.furthest = max(passes.furthest, place)
        if place == 1:
            _begin(passes, batch)

    def _of(self, iterator: Any) -> _Passes | None:
        dataset = iterator._dataset
        passes = self._passes.get(id(dataset))
        if passes is not None and passes.dataset() is dataset:
            return passes
        try:
            ref = weakref.ref(dataset)
        except TypeError:  # a list, say
            return None
        self._passes = {key: one for key, one in self._passes.items() if one.dataset() is not None}
        if len(self._passes) >= _MOST:
            return None
        passes = self._passes[id(dataset)] = _Passes(ref, _length(iterator, dataset))
        return passes

    def scalars(self, step: int) -> Iterator[Scalar]:
        """What is known after a step of the data set that has given most batches."""
        most = max(self._passes.values(), key=lambda one: one.given, default=None)
        if most is None:
            return
        yield Scalar(step, "data.passes", float(most.begun))
        yield Scalar(step, "data.repeats", float(most.repeats))
        yield Scalar(step, "data.reached", most.reached)
        yield Scalar(step, "data.batches", float(most.given))


@apart
def _begin(passes: _Passes, batch: Any) -> None:
    """A pass begins with a batch."""
    known = _hash(batch)
    passes.repeats += known is not None and known == passes.first
    passes.begun += 1
    passes.first = known


def _length(iterator: Any, dataset: Any) -> int | None:
    if isinstance(dataset, IterableDataset):
        return None
    try:
        return len(iterator)
    except TypeError:  # a sampler without a length
        return None


def _hash(batch: Any) -> bytes | None:
    """A hash of some elements of a batch's tensors on the host; None if it has none there."""
    tensors = [t for t in _tensors(batch) if on_host(t) and t.layout is torch.strided and t.numel()]
    if not tensors:
        return None
    found = hashlib.blake2b(digest_size=16)
    for tensor in tensors[:_TENSORS]:
        some = sample(tensor).contiguous()
        found.update(repr((tensor.dtype, tuple(tensor.shape))).encode())
        found.update(in_numpy(some.view(torch.uint8)).tobytes())
    return found.digest()


def _tensors(batch: Any) -> Iterator[Tensor]:
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, dict):
        yield from (t for one in cast("dict[Any, Any]", batch).values() for t in _tensors(one))
    elif isinstance(batch, list | tuple):
        yield from (t for one in cast("list[Any]", batch) for t in _tensors(one))
