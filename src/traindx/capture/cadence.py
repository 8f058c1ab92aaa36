"""When to measure: a fixed choice of steps, and a budget that may only make it sparser."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from statistics import median

from traindx.messages import say

DENSE = 10
"""The first steps, each of which is measured: faults show there first."""
BUDGET = 0.03
"""Largest fraction of training time for measuring and listening, by default."""
EXEMPT = 200
"""Steps before the budget is enforced; shorter runs are exempt."""
GRACE = 0.25
"""Seconds of measuring before it is: about what starting traindx takes, whatever the training."""
LEAST_PART = 0.25
"""Part of the budget that is for measuring even where listening takes all of it."""
STRETCH = 1024
"""Measured steps after which the interval doubles, whatever they cost."""
_FIRST_EVERY = 32
_MAX_EVERY = 1 << 16
_SCATTER = 0x9E3779B1  # 2^32 over the golden ratio: its multiples spread evenly (Knuth, TAOCP 6.4)


class Cadence:
    """Steps 0 to 9, then one of every 2^k; or exactly every N-th.

    Which one of a block of 2^k is fixed but irregular: whatever the script does every second or
    every sixteenth step cannot stay out of sight. 2^k is 32 at first, and doubles after every
    1,024 measured steps, so that the longer a run is, the less each of its steps leaves behind. It
    doubles as well as long as measuring costs more than the budget has left beside listening, once
    that is enforced: from `EXEMPT` steps and `GRACE` seconds of measuring on.

    Attributes:
        every: The interval in force after the dense start.
        fixed: Whether it was given, and so never changes.
        spending: What measuring costs.
        mark: When the last step ended.
        since: The step from which the budget is enforced; None before.
        refused: Steps that were due, but not to be paid for.
    """

    def __init__(
        self, every: int | None = None, *, budget: float = BUDGET, clock: Callable[[], float]
    ) -> None:
        self.fixed = every is not None
        self.every = every or _FIRST_EVERY
        self.spending = Spending(budget)
        self._clock = clock
        self.mark = clock()
        self._stretch = 0
        self.since: int | None = None
        self.refused = 0

    def due(self, count: int) -> bool:
        """Whether the step with this number (from 0) is to be measured."""
        if self.fixed:
            return count % self.every == 0
        return count < DENSE or count == self._place(count // self.every)

    def next_due(self, count: int) -> int:
        """The first step after this one that is to be measured."""
        block = count // self.every
        if self.fixed:
            return (block + 1) * self.every
        if count + 1 < DENSE:
            return count + 1
        place = self._place(block)
        while place <= max(count, DENSE - 1):
            block += 1
            place = self._place(block)
        return place

    def _place(self, block: int) -> int:
        """The step of a block that is measured."""
        return block * self.every + (block * _SCATTER >> 16) % self.every

    def affords(self, step: int) -> bool:
        """Whether a step that is due can be paid for; the budget saves up for those refused."""
        if self.fixed or not self._enforced(step) or self.spending.allows():
            return True
        self.refused += 1
        return False

    def _enforced(self, step: int) -> bool:
        """Whether the budget is in force at this step, before which all is known."""
        if self.since is None and step >= EXEMPT and self.spending.spent >= GRACE:
            self.since = step
            self.spending.begin()
        return self.since is not None

    def step_ended(self, *, measured: bool, step: int) -> float:
        """Note the end of a step; its seconds since the last one's, or since the beginning."""
        now = self._clock()
        seconds, self.mark = now - self.mark, now
        # The first steps warm caches and allocate; they say nothing of the cost.
        if step >= _WARM:
            self.spending.note(seconds, measured=measured)
        return seconds

    def steps_passed(self, ends: Iterable[float]) -> None:
        """Note when unmeasured steps beyond the first ones have ended."""
        for end in ends:
            self.spending.unmeasured(end - self.mark)
            self.mark = end

    def skip_time(self) -> None:
        """Start the next step's clock now: what came since the last step was not training."""
        self.mark = self._clock()

    @property
    def fraction(self) -> float | None:
        """Fraction of the time that measured steps took longer; None with nothing to compare."""
        return self.spending.fraction

    def kept(self) -> dict[str, float | None]:
        """The budget, how it was kept since it is enforced, and the steps given up for it."""
        if self.fixed or self.since is None:
            return {}
        return {
            "budget": self.spending.budget,
            "budget_since": self.since,
            "budget_fraction": self.spending.fraction_enforced,
            "refused_steps": self.refused,
        }

    def adapt(self, step: int) -> str:
        """Make the ladder sparser where that is due, after a measured step; why, if it changed."""
        if self.fixed:
            return ""
        self._stretch += 1
        spending = self.spending
        wanted = spending.interval(self.every) if self._enforced(step + 1) else self.every
        if wanted > self.every:
            self.every, self._stretch = wanted, 0
            return say("the budget of {budget:.0%} was exceeded", budget=spending.budget)
        if self._stretch < STRETCH or self.every >= _MAX_EVERY:
            return ""
        self.every, self._stretch = 2 * self.every, 0
        return say(
            "{count} steps were measured at the interval before; the longer a run, the fewer",
            count=STRETCH,
        )


_WARM = 3
_ENOUGH = 5
"""Measured steps, and unmeasured ones, from which on costs are known."""
_LEAST = 800
"""Unmeasured steps whose budget may be spent at once: that of a run of a thousand steps."""
_OUTLIER = 5
"""How many times the typical cost one measured step is taken to have cost at most."""
_NOISE = 0.1
"""The cost, in unmeasured steps, below which a typical one is no measure of others."""
_MARGIN = 1.1
"""How far spending may be above the budget for the moment."""


class Spending:
    """What measured steps take longer than the unmeasured ones, what comes of them, and listening.

    Taken from the duration of whole steps, since a tool's own clock does not see what it costs in
    caches and memory. Medians keep a pause of the machine, or of the script, from being taken for
    a cost: what lies far above the typical cost counts as far as `_OUTLIER` times that. What
    listening takes of the unmeasured steps no comparison can tell; it comes from our own clock.

    Args:
        budget: Largest fraction of training time to spend.

    Attributes:
        budget: The same.
        listening: Seconds that listening takes of an unmeasured step; None while unknown.
        spent: Seconds that measured steps took longer.
        followed: Seconds that saving and judging took after them.
    """

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self._costs: deque[float] = deque(maxlen=31)
        self._bare: deque[float] = deque(maxlen=33)
        self.listening: float | None = None
        self.spent = self.followed = self._total = 0.0
        self._exempt_total = self._exempt_spent = 0.0
        self._unbilled: list[float] = []

    def note(self, seconds: float, *, measured: bool) -> None:
        """Take a step."""
        if not measured:
            self.unmeasured(seconds)
        elif len(self._bare) < _ENOUGH:
            self._total += seconds
            if len(self._unbilled) < DENSE:
                self._unbilled.append(seconds)
        else:
            self._bill(seconds)

    def begin(self) -> None:
        """What was spent so far is exempt from the budget."""
        self._exempt_total, self._exempt_spent = self._total, self.spent + self.followed

    def follow(self, seconds: float, steps: int = 1) -> None:
        """Take what saving and judging took after the so many measured steps noted last."""
        self.followed += seconds
        if self._costs and (bare := self.bare):
            for i in range(-min(steps, len(self._costs)), 0):
                # Now and then a commit comes with it, of which the next steps have none.
                self._costs[i] += min(seconds / steps / bare, abs(self._costs[i]) + _NOISE)

    def unmeasured(self, seconds: float) -> None:
        """Take an unmeasured step."""
        self._bare.append(seconds)
        self._total += seconds

    def _bill(self, seconds: float) -> None:
        bare = median(self._bare)
        # The dense start comes before anything to compare it with. It costs more than later steps,
        # which need fewer vectors, so it says nothing of them.
        self.spent += sum(one - bare for one in self._unbilled)
        self._unbilled.clear()
        cost = seconds / bare - 1 if bare else 0.0
        if len(self._costs) >= _ENOUGH:
            cost = min(cost, _OUTLIER * max(median(self._costs), _NOISE))
        self._costs.append(cost)
        self.spent += cost * bare
        self._total += seconds

    @property
    def fraction(self) -> float | None:
        """What measured steps took longer, of all the time; None with nothing to compare."""
        if len(self._bare) < _ENOUGH or not self._total or not (self._costs or self._unbilled):
            return None
        bare = median(self._bare)
        spent = self.spent + sum(one - bare for one in self._unbilled)
        return max(0.0, spent / self._total)

    @property
    def listening_fraction(self) -> float | None:
        """What listening takes of an unmeasured step; None if either is unknown."""
        bare = self.bare
        return self.listening / bare if self.listening is not None and bare else None

    @property
    def left(self) -> float:
        """What of the budget is for measuring."""
        return max(self.budget - (self.listening_fraction or 0.0), LEAST_PART * self.budget)

    @property
    def fraction_enforced(self) -> float | None:
        """Fraction of the time since the budget is enforced, with listening; None before."""
        total = self._total - self._exempt_total
        if total <= 0:
            return None
        measuring = max(0.0, (self.spent + self.followed - self._exempt_spent) / total)
        return measuring + (1 - measuring) * (self.listening_fraction or 0.0)

    @property
    def bare(self) -> float | None:
        """Seconds of an unmeasured step; None if too few were seen."""
        return median(self._bare) if len(self._bare) >= _ENOUGH else None

    def allows(self) -> bool:
        """Whether one more measured step stays within what the budget has left for it."""
        bare = self.bare
        if bare is None or len(self._costs) < _ENOUGH:
            return True
        total = max(self._total - self._exempt_total, _LEAST * bare)
        spent = self.spent + self.followed - self._exempt_spent + bare * max(self._costs)
        return spent <= _MARGIN * self.left * total

    def interval(self, every: int) -> int:
        """The least interval that leaves the budget whole among `every`, its double, and so on.

        An interval never falls again, so the cost must exceed what is left beyond its own scatter;
        meanwhile `allows` keeps to the budget.
        """
        num = len(self._costs)
        if num < _ENOUGH:
            return every
        typical = median(self._costs)
        scatter = median(abs(cost - typical) for cost in self._costs)
        cost = typical - 2 * scatter / math.sqrt(num)
        left = self.left
        while every < _MAX_EVERY and cost > left * (every + cost):
            every *= 2
        return every
