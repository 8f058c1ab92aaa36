"""Which thread's training is watched: one at a time, since gradients are nobody's but its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from traindx.messages import say

_OTHERS = say("models are called in another thread, too: only one thread's training is measured")


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
        self._ident: int | None = None

    def may_be_this(self) -> bool:
        """Whether no other living thread has been found to train."""
        if self._ident == threading.get_ident():
            return True
        thread = self._thread
        here = thread is None or thread.ident == threading.get_ident() or not thread.is_alive()
        if not (here or self._told):
            self._told = True
            self._tell(_OTHERS)
        return here

    def claim(self) -> bool:
        """A backward pass starts in the calling thread; True if it is now the one."""
        if self._ident == threading.get_ident():
            return True
        with self._lock:
            if self.may_be_this():
                self._thread = threading.current_thread()
                self._ident = self._thread.ident
                return True
            return False
