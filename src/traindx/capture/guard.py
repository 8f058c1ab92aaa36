"""If traindx itself fails inside somebody's training, it says so once and steps aside."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import torch
from torch.utils._python_dispatch import (
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
)

P = ParamSpec("P")
S = TypeVar("S", bound="Guarded")

ROOM = 100
"""Frames that measuring may need beyond those of the training."""
_HIGHEST = 2**31 - 1
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
        limit = make_room(ROOM)
        try:
            with _without_functions():
                if not _modes():
                    method(*args, **kwargs)
                    return
                with _disable_current_modes():
                    method(*args, **kwargs)
        finally:
            give_back(limit, ROOM)

    return run


def make_room(frames: int) -> int:
    """Let this thread go so many frames deeper; what `give_back` must be given, 0 if nothing.

    The limit is that of all threads, and a second one that raised it before the first has put it
    back would leave it raised for good. So one thread at a time does, as often as it likes: the
    user's own recursion may have used up what was given before. None waits for another: a fork may
    have copied a lock that is held.
    """
    if not _has_room.acquire(False):
        return 0
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(min(limit + frames, _HIGHEST))
    return limit


def give_back(limit: int, frames: int) -> None:
    """Put the limit back, unless the program has set one of its own."""
    if limit:
        try:
            if sys.getrecursionlimit() == min(limit + frames, _HIGHEST):
                sys.setrecursionlimit(limit)
        finally:
            _has_room.release()


def in_training(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """`guarded` and `apart`, for the moments of a step: those of a second thread are passed over.

    A gradient must not be read while another thread may be freeing it. Nor may anything be done
    while a CUDA graph is captured, which would do it again at every replay.
    """
    method_apart = apart(method)

    @functools.wraps(method)
    def run(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
        if not self.active:
            return
        try:
            if self.is_training_thread() and not self.is_capturing():
                method_apart(self, *args, **kwargs)
        except Exception as error:
            self.give_up(error)

    return run


def in_backward(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """The same within a backward pass, for which there is room, in any of autograd's threads."""

    # Not made of the others: each function is one more that the pass has driven out of the
    # processor's caches, and this is called for every output's gradient.
    @functools.wraps(method)
    def run(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
        if not self.active:
            return
        try:
            if self.is_capturing():
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


def place(error: Exception) -> str:
    """Where in traindx an error arose, for a bug report."""
    traceback, last = error.__traceback__, None
    while traceback is not None:
        last, traceback = traceback, traceback.tb_next
    return "" if last is None else f" in {last.tb_frame.f_code.co_name}, line {last.tb_lineno}"
