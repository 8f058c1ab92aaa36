"""Data loaders of a program that is running, and tensors that may be its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from traindx.preflight.case import Loaders

_FRAMES = 40
"""Frames above a step in which data loaders are looked for."""
_MANY = 64
"""Rows from which on a tensor may be the data."""
_SHORT = 16
"""Elements of a container that is looked into."""


class SeenLoaders:
    """Which data loaders there are, and which was iterated last."""

    def __init__(self) -> None:
        self._last: Any = None
        self._undo: Callable[[], None] | None = None

    def install(self) -> None:
        """Begin to listen."""
        owner = cast(Any, DataLoader)
        original = owner.__iter__
        loaders = self

        def iterated(self: Any) -> Any:
            if torch.is_grad_enabled():
                loaders._last = self
            return original(self)

        owner.__iter__ = iterated

        def undo() -> None:
            if owner.__iter__ is iterated:
                owner.__iter__ = original

        self._undo = undo

    def remove(self) -> None:
        """Stop listening."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def found(self, frame: Any) -> Loaders:
        """What is visible from a frame."""
        others: dict[str, Any] = {}
        tensors: dict[int, Tensor] = {}
        for _ in range(_FRAMES):
            if frame is None:
                break
            if str(frame.f_globals.get("__name__")).partition(".")[0] not in ("torch", "traindx"):
                for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
                    if isinstance(value, DataLoader) and value is not self._last:
                        others.setdefault(name, value)
                    tensors.update((id(t), t) for t in _data(value))
            frame = frame.f_back
        return Loaders(self._last, others, tuple(tensors.values()))


def _data(value: Any) -> Iterator[Tensor]:
    """A tensor of many rows that needs no gradient, or such tensors in a short tuple, list or dict.

    Their classes are the plain ones, so that to look into them runs no code of the user's.
    """
    if type(value) is Tensor:
        if value.dim() and value.shape[0] >= _MANY and not value.requires_grad:
            yield value
    elif type(value) in (tuple, list, dict):
        held = cast("list[Any]", [*value.values()] if type(value) is dict else [*value])
        if len(held) <= _SHORT:
            yield from (t for one in held if type(one) is Tensor for t in _data(one))
