"""If traindx itself fails inside somebody's training, it says so once and steps aside."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from sys import getrecursionlimit, setrecursionlimit
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import torch
from torch.utils._python_dispatch import (
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
)

P = ParamSpec("P")
S = TypeVar("S", bound="Guarded")

ROOM = 100
"""Frames that measuring may need beyond those of the training.

Besides, of each module called, torch has three frames on the stack and we one more: a model nested
almost to the limit must not exceed it for us, nor where we measure. The training's own code sees
the limit raised, and a recursion without end goes that much deeper.
"""
_OURS = 1000
"""Such frames of ours that there is room for: a stack has an end as well."""
_NO_LIMIT = 10**9
"""A limit of recursion above which nobody comes near it."""
_has_room = threading.RLock()
"""Held by the thread that has raised the limit of recursion."""

_without_functions: Callable[[], Any] = cast(Any, torch)._C.DisableTorchFunction
_modes: Callable[[], int] = cast(Any, torch)._C._len_torch_dispatch_stack


class Guarded(Protocol):
    """What `guarded` needs of the object whose methods it protects."""

    @property
    def active(self) -> bool:
        """Whether to run at all."""
        ...

    @property
    def is_training_thread(self) -> Callable[[], bool]:
        """Asks whether the training watched may be going on in the calling thread."""
        ...

    @property
    def is_capturing(self) -> Callable[[], bool]:
        """Asks whether what is done now becomes a part of a CUDA graph."""
        ...

    def give_up(self, error: Exception) -> None:
        """Detach everything and warn once."""
        ...


def guarded(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """Run a method that training calls into; an exception of ours never reaches the training."""

    @functools.wraps(method)
    def run(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
        if not self.active:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self.give_up(error)

    return run


def apart(method: Callable[P, None]) -> Callable[P, None]:
    """Run a method apart from what the user has put between Python and torch.

    Modes that count operations, or make tensors on a default device, and tensors of a class of the
    user's would see our operations among those of the training. A training that recurses almost to
    the limit has left us no frames, so we bring our own.
    """

    @functools.wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        limit = make_room()
        try:
            with _without_functions():
                if not _modes():
                    method(*args, **kwargs)
                    return
                with _disable_current_modes():
                    method(*args, **kwargs)
        finally:
            give_back(limit)

    return run


def make_room() -> int:
    """Let this thread go deeper; what `give_back` must be given, 0 if nothing.

    The limit is that of all threads, and a second one that raised it before the first has put it
    back would leave it raised for good. So one thread at a time does, as often as it likes: the
    user's own recursion may have used up what was given before. None waits for another: a fork may
    have copied a lock that is held.
    """
    if not _has_room.acquire(False):
        return 0
    limit = getrecursionlimit()
    if limit < _NO_LIMIT:
        setrecursionlimit(limit + min(limit // 3, _OURS) + ROOM)
    return limit


def give_back(limit: int) -> None:
    """Put the limit back, unless the program has set one of its own."""
    if limit:
        try:
            if getrecursionlimit() == limit + min(limit // 3, _OURS) + ROOM:
                setrecursionlimit(limit)
        finally:
            _has_room.release()


def in_room(tell: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    """Call something that needs frames of its own."""
    limit = make_room()
    try:
        tell(*args, **kwargs)
    finally:
        give_back(limit)


# The two below are not made of the others: each function is one more that a pass has driven out of
# the processor's caches, and they are called for each output of a module and its gradient.


def in_training(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """`guarded` and apart, for the moments of a step: those of a second thread are passed over.

    A gradient must not be read while another thread may be freeing it. Nor may anything be done
    while a CUDA graph is captured, which would do it again at every replay. Whoever calls it has
    made room.
    """

    @functools.wraps(method)
    def run(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
        if not self.active:
            return
        try:
            if not self.is_training_thread() or self.is_capturing():
                return
            with _without_functions():
                if not _modes():
                    method(self, *args, **kwargs)
                    return
                with _disable_current_modes():
                    method(self, *args, **kwargs)
        except Exception as error:
            self.give_up(error)

    return run


def within(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """The same in the midst of a pass, by any of autograd's threads: its start asked the rest."""

    @functools.wraps(method)
    def run(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
        if not self.active:
            return
        try:
            with _without_functions():
                if not _modes():
                    method(self, *args, **kwargs)
                    return
                with _disable_current_modes():
                    method(self, *args, **kwargs)
        except Exception as error:
            self.give_up(error)

    return run


def place(error: Exception) -> str:
    """Where in traindx an error arose, for a bug report."""
    traceback, last = error.__traceback__, None
    while traceback is not None:
        last, traceback = traceback, traceback.tb_next
    return "" if last is None else f" in {last.tb_frame.f_code.co_name}, line {last.tb_lineno}"
