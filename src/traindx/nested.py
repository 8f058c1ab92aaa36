"""Tensors in nested arguments and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from torch import Tensor

_DEPTH = 16
"""Containers in containers that are opened."""


def tensors(value: object) -> Iterator[Tensor]:
    """Every tensor in lists, tuples and dicts, in order; containers may hold each other."""
    return _tensors(value, set(), _DEPTH)


def _tensors(value: object, seen: set[int], depth: int) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif depth and isinstance(value, dict | list | tuple):
        container = cast(object, value)
        if id(container) not in seen:
            seen.add(id(container))
            for element in _elements(container):
                yield from _tensors(element, seen, depth - 1)


def _elements(container: object) -> list[object]:
    if isinstance(container, dict):
        return [*cast("dict[object, object]", container).values()]
    return [*cast("Iterable[object]", container)]


def first_tensor(value: object) -> Tensor | None:
    """The first of them (an LSTM's output, not its state)."""
    return value if isinstance(value, Tensor) else next(tensors(value), None)


def holds_data(tensor: Tensor) -> bool:
    """Whether it has values at all: those of a memory estimate (meta, fake) have none."""
    return not (tensor.is_meta or hasattr(tensor, "fake_mode"))
