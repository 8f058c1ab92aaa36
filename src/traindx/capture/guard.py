"""If traindx itself fails inside somebody's training, it says so once and steps aside."""

from __future__ import annotations

import functools
import threading
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
    def lock(self) -> threading.RLock:
        """Held while one of them runs: models may be trained in several threads."""
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
        with self.lock:
            try:
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
