"""If traindx itself fails inside somebody's training, it says so once and steps aside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import torch
from torch.utils._python_dispatch import (
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
)

P = ParamSpec("P")
S = TypeVar("S", bound="Guarded")


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
    user's would see our operations among those of the training.
    """

    @functools.wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        internals = cast(Any, torch)._C
        with internals.DisableTorchFunction():
            if not internals._len_torch_dispatch_stack():
                method(*args, **kwargs)
                return
            with _disable_current_modes():
                method(*args, **kwargs)

    return run


def in_training(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """`guarded`, for the moments of a step: those of a second thread that trains are passed over.

    A gradient must not be read while another thread may be freeing it.
    """
    method_apart = apart(method)

    @functools.wraps(method)
    def run(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
        if not self.active:
            return
        try:
            if self.is_training_thread():
                method_apart(self, *args, **kwargs)
        except Exception as error:
            self.give_up(error)

    return run


def place(error: Exception) -> str:
    """Where in traindx an error arose, for a bug report."""
    traceback, last = error.__traceback__, None
    while traceback is not None:
        last, traceback = traceback, traceback.tb_next
    return "" if last is None else f" in {last.tb_frame.f_code.co_name}, line {last.tb_lineno}"
