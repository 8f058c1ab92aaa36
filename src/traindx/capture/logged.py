"""What the program logs itself: numbers by name, kept until the next writing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import SupportsFloat, SupportsIndex

from torch import Tensor

from traindx.capture.transfer import Lists, Numbers, Unread
from traindx.messages import Message, say
from traindx.records import Scalar, Site


class Logged:
    """Numbers given to `traindx.log`, by step and name.

    One on the CPU is read at once. One on another device is kept as a scalar of its own, and
    fetched with what is measured there.

    Args:
        tell: Told, once a name, that what came under it is no number.
    """

    def __init__(self, tell: Callable[[Message], None]) -> None:
        self._tell = tell
        self._told: set[str] = set()
        self._unread: dict[tuple[int, str], float | Tensor] = {}
        self._lock = threading.Lock()  # any thread may log

    def note(self, step: int, values: Mapping[object, object]) -> None:
        """Take numbers; the last one of a name and step counts."""
        for key, value in values.items():
            name = _name(key)
            number = _number(value) if name else None
            if number is not None:
                with self._lock:
                    self._unread[step, name] = number
            elif name not in self._told:
                self._told.add(name)
                self._tell(_no_number(name, type(value).__name__))

    def unread(self, *, fetch: bool) -> list[Unread]:
        """All of them, for the host to read.

        Args:
            fetch: Whether to take those on a device, too; with any of them, all wait otherwise.
        """
        if not self._unread:
            return []
        with self._lock:
            if not fetch and any(isinstance(value, Tensor) for value in self._unread.values()):
                return []
            unread, self._unread = self._unread, {}
        keys = [*unread]

        def items(numbers: Numbers, _lists: Lists) -> Iterator[Scalar]:
            for (step, name), number in zip(keys, numbers, strict=True):
                yield Scalar(step, "logged", number, Site("", name))

        return [Unread([*unread.values()], [], items)]


def _name(key: object) -> str:
    """It as text that can be written; empty if its own class cannot say."""
    try:
        return str(key).encode(errors="replace").decode()
    except Exception:
        return ""


def _number(value: object) -> float | Tensor | None:
    """One number, on the device where it is; None if it is none."""
    try:
        if isinstance(value, Tensor):
            return _of_tensor(value)
        if hasattr(value, "shape") and callable(item := getattr(value, "item", None)):
            value = item()  # a NumPy scalar, or an array with a single element
        return float(value) if isinstance(value, SupportsFloat | SupportsIndex) else None
    except Exception:  # whatever the value's own class does
        return None


def _of_tensor(value: Tensor) -> float | Tensor | None:
    if value.numel() != 1 or value.is_complex() or value.is_meta:
        return None
    value = value.detach().reshape(())
    return float(value) if value.is_cpu else value.clone()


def _no_number(name: str, kind: str) -> Message:
    if not name:
        return say(
            "`traindx.log` takes each number with a name, and got a {kind} without one; it is left "
            "out. Write `traindx.log(val_loss=...)`.",
            kind=kind,
        )
    return say(
        "`traindx.log` takes single numbers, and `{name}` is a {kind} that is none; it is left "
        "out. Give a float, an int or a tensor with one element.",
        name=name,
        kind=kind,
    )
