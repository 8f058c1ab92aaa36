"""When to measure: a fixed choice of steps, and a budget that may only make it sparser."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import median

from traindx.messages import Message, say

DENSE = 10
"""The first steps, each of which is measured: faults show there first."""
BUDGET = 0.03
"""Largest fraction of training time that measuring may take, unless the user says otherwise."""
EXEMPT = 200
"""Steps before the budget is enforced; shorter runs are exempt."""
_FIRST_EVERY = 32
_MAX_EVERY = 1 << 16
_SCATTER = 0x9E3779B1  # 2^32 over the golden ratio: its multiples spread evenly (Knuth, TAOCP 6.4)


class Cadence:
    """Steps 0 to 9, then one of every 2^k; or exactly every N-th.

    Which one of a block of 2^k is fixed but irregular: whatever the script does every second or
    every sixteenth step cannot stay out of sight.

    The cost of measuring is taken from the duration of whole steps, measured against neighbouring
    unmeasured ones, since a tool's own clock does not see what it costs in caches and memory.

    Attributes:
        every: The interval in force after the dense start.
        fixed: Whether it was given, and so never changes.
        budget: Largest fraction of training time that measuring may take.
        mark: When the last step ended.
    """

    def __init__(
        self, every: int | None = None, *, budget: float = BUDGET, clock: Callable[[], float]
    ) -> None:
        self.fixed = every is not None
        self.every = every or _FIRST_EVERY
        self.budget = budget
        self._clock = clock
        self.mark = clock()
        self._measured: deque[float] = deque(maxlen=9)
        self._unmeasured: deque[float] = deque(maxlen=33)
        self._total = 0.0
        self._measuring = 0.0
        self._num_measured = 0

    def due(self, count: int) -> bool:
        """Whether the step with this number (from 0) is to be measured."""
        if self.fixed:
            return count % self.every == 0
        block, place = divmod(count, self.every)
        return count < DENSE or place == (block * _SCATTER >> 16) % self.every

    def step_ended(self, *, measured: bool, step: int) -> float:
        """Note the end of a step; its seconds since the last one's, or since the beginning."""
        now = self._clock()
        seconds, self.mark = now - self.mark, now
        # The first steps warm caches and allocate; they say nothing of the cost.
        if step >= 3:
            self._note(seconds, measured=measured)
        return seconds

    def skip_time(self) -> None:
        """Start the next step's clock now: what came since the last step was not training."""
        self.mark = self._clock()

    def _note(self, seconds: float, *, measured: bool) -> None:
        (self._measured if measured else self._unmeasured).append(seconds)
        self._total += seconds
        self._measuring += seconds * measured
        self._num_measured += measured

    @property
    def fraction(self) -> float | None:
        """Fraction of the time that measured steps took longer; None with nothing to compare."""
        if len(self._unmeasured) < 3 or not self._num_measured or not self._total:
            return None
        extra = self._measuring - self._num_measured * median(self._unmeasured)
        return max(0.0, extra / self._total)

    def adapt(self, step: int) -> str:
        """Make the ladder sparser if the budget is exceeded; why, if it changed."""
        if self.fixed or step < EXEMPT or len(self._measured) < 5 or len(self._unmeasured) < 5:
            return ""
        bare = median(self._unmeasured)
        extra = max(0.0, median(self._measured) - bare)
        before = self.every
        while self.every < _MAX_EVERY and extra > self.budget * (bare * self.every + extra):
            self.every *= 2
        changed = self.every != before
        return self._exceeded() if changed else ""

    def _exceeded(self) -> Message:
        return say("measuring exceeded its budget of {budget:.0%}", budget=self.budget)
