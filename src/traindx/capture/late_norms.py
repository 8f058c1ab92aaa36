"""Comparisons of running statistics on the CPU that are made for several steps at once.

Those of one step, made as it ends, find nothing in the processor's caches, and are some forty small
operations on small arrays. Those of several cost little more, so they are made when somebody asks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from traindx.capture.arrays import numbers
from traindx.capture.running import OnHost, Snapshot

_AT_ONCE = 8192
"""Channels of all steps compared at once, about: of more the arrays leave the caches again."""
_WAITING = 64
"""Steps that wait to be asked for, at most."""

_TOLD = (
    "tracked",
    "initial_weight",
    "updates",
    "running_gap",
    "variance_noise",
    "running_change",
)
"""What a step tells of each layer."""


class LateNorms:
    """What steps have done to some layers, told later.

    Attributes:
        names: Layer and quantity of each number of a step.
    """

    def __init__(self, layers: OnHost) -> None:
        self.names = [(fqn, f"norm.{told}") for told in _TOLD for fqn in layers.setting.layers]
        self._layers = layers
        self._waiting: list[_Step] = []
        self._lock = threading.RLock()  # somebody may ask from another thread

    def step(self, old: Snapshot, new: Snapshot) -> Callable[[], Sequence[float]]:
        """What makes the numbers of the step between two snapshots, one for each of `names`."""
        step = _Step(old, new, [])
        with self._lock:
            self._waiting.append(step)
            if len(self._waiting) == _WAITING:
                self._make()
        return lambda: self._made(step)

    def _made(self, step: _Step) -> list[float]:
        with self._lock:
            if not step.numbers:
                self._make()
        return step.numbers

    def _make(self) -> None:
        count = max(1, _AT_ONCE // sum(self._layers.setting.sizes))
        while some := self._waiting[:count]:
            self._compare(some)
            # Whoever interrupts this finds them waiting still; and a signal's handler may come by.
            self._waiting = [step for step in self._waiting if not step.numbers]

    def _compare(self, steps: Sequence[_Step]) -> None:
        old, new = _joined([step.old for step in steps]), _joined([step.new for step in steps])
        with np.errstate(all="ignore"):  # the user may have made errors of what NumPy ignores
            told = self._layers.counted(new) | self._layers.compared(old, new).by_layer
        every = np.concatenate([told[quantity] for quantity in _TOLD], axis=-1)
        for step, of_step in zip(steps, every, strict=True):
            step.numbers[:] = numbers(of_step)


class _Step(NamedTuple):
    """The snapshots around a step, and its numbers once they are made."""

    old: Snapshot
    new: Snapshot
    numbers: list[float]


def _joined(moments: Sequence[Snapshot]) -> Snapshot:
    """Those of several steps, a row each."""
    return Snapshot(
        np.array([it.mean for it in moments]),
        np.array([it.var for it in moments]),
        np.array([it.tracked for it in moments]),
    )
