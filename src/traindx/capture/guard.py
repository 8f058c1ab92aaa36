"""If traindx itself fails inside somebody's training, it says so once and steps aside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

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


def in_training(method: Callable[Concatenate[S, P], None]) -> Callable[Concatenate[S, P], None]:
    """`guarded`, for the moments of a step: those of a second thread that trains are passed over.

    A gradient must not be read while another thread may be freeing it.
    """

    @functools.wraps(method)
    def run(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
        if not self.active:
            return
        try:
            if self.is_training_thread():
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
