"""Judging several measured steps at one go, while a training runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from traindx.records import Item
from traindx.rules.engine import Engine

_PATIENCE = 0.5
"""Seconds from one judging to the next."""


class Batched:
    """A sink that hands items on to an engine twice a second at most.

    Between two steps of a training nothing of the rules is in the processor's caches, and judging
    one step costs about twice of what it does among others. Rules look back only, and the engine
    asks them after every measured step it is given, so the findings are the same.

    Args:
        engine: What judges.
        patience: Seconds from one judging to the next.
        clock: Seconds.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        patience: float = _PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._patience = patience
        self._clock = clock
        self._waiting: list[Item] = []
        self._judged = clock()
        self._lock = threading.RLock()  # somebody may ask from another thread

    def write(self, items: Sequence[Item]) -> None:
        """Take items, in order of step."""
        with self._lock:
            self._waiting.extend(items)
        if self._clock() - self._judged >= self._patience:
            self.catch_up()

    def catch_up(self) -> None:
        """Hand on everything that waits."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
            if waiting:
                self._engine.write(waiting)
            self._judged = self._clock()

    def close(self) -> None:
        """Judge what is left, and leave the verdict in the run."""
        self.catch_up()
        self._engine.close()
