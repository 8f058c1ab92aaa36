"""Data loaders of a program that is running."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch.utils.data import DataLoader

from traindx.preflight.case import Loaders

_FRAMES = 40
"""Frames above a step in which data loaders are looked for."""


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
        for _ in range(_FRAMES):
            if frame is None:
                break
            if str(frame.f_globals.get("__name__")).partition(".")[0] not in ("torch", "traindx"):
                for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
                    if isinstance(value, DataLoader) and value is not self._last:
                        others.setdefault(name, value)
            frame = frame.f_back
        return Loaders(self._last, others)
