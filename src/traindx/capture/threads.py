"""Which thread's training is watched: one at a time, since gradients are nobody's but its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from traindx.messages import say

_OTHERS = say("models are called in another thread, too: only one thread's training is measured")


class _Token(threading.local):
    """An object of each thread's own."""

    def __init__(self) -> None:
        self.here = object()


_token = _Token()


def this_thread() -> object:
    """What stands for the calling thread: the system gives the number of a dead one to the next."""
    return _token.here


class TrainingThread:
    """The thread in which the first backward pass started, for as long as it lives.

    Args:
        tell: Told once that there is another.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told = False
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._claimed: object = None

    def may_be_this(self) -> bool:
        """Whether no other living thread has been found to train."""
        if self._claimed is this_thread():
            return True
        here = self._thread is None or not self._thread.is_alive()
        if not (here or self._told):
            self._told = True
            self._tell(_OTHERS)
        return here

    @property
    def is_here(self) -> bool:
        """Whether the calling thread is the one."""
        return self._claimed is this_thread()

    def claim(self) -> bool:
        """A backward pass starts in the calling thread; True if it is now the one."""
        if self._claimed is this_thread():
            return True
        with self._lock:
            if self.may_be_this():
                self._thread = threading.current_thread()
                self._claimed = this_thread()
                return True
            return False
