"""What is made of the times: ratios to the bare steps beside them in the same process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, nan, sqrt
from statistics import fmean, median, quantiles, stdev
from typing import NamedTuple

from benchmarks.costs.sessions import FailedError, Plan, Session, Step, session
from benchmarks.costs.settings import DENSE, EXEMPT, WARM

LIMIT = 3
"""How many times the median a step counts at most: what is beyond is the machine's."""
OUTLIER = 5
"""How many times the typical one a single step's cost counts at most: beyond is the machine's."""
NEIGHBOURS = 8
"""Unmeasured steps on either side that a measured one is compared with."""


class Ratio(NamedTuple):
    """A ratio to bare training: its median over the processes, and the quartiles."""

    middle: float
    low: float
    high: float


class Estimate(NamedTuple):
    """A number, and its standard error; NaN where a single value tells none."""

    value: float
    error: float


@dataclass(frozen=True)
class Cost:
    """What a setting costs, in bare steps.

    Attributes:
        cpu: Mean CPU time in the long run: of unmeasured and measured steps in their proportion.
        quiet: The same with the quietest tenth of a process's steps in place of the mean, and that
            of its bare ones. Where few steps are measured, those keep their mean, and so do steps
            after which what others have left is saved and judged.
        wall: The same as `cpu`, of elapsed time.
        paired: CPU time of the middle steps of a block over that of the bare blocks beside it, over
            all blocks: it tells small differences where there are many short ones.
        unmeasured: CPU time of an unmeasured step; None where there is none.
        measured: CPU time of a measured step, or of any where all are alike.
        every: One step of how many is measured in the long run.
        around: CPU seconds of beginning and ending.
        bare: CPU seconds of the bare step beside it.
        steps: Steps seen in this setting.
        processes: Each process's `quiet`.
        peak: Largest resident memory, in bytes.
        written: Bytes written a step.
    """

    cpu: Ratio
    quiet: Ratio
    wall: Ratio
    paired: Estimate
    unmeasured: float | None
    measured: float | None
    every: int
    around: float
    bare: float
    steps: int
    processes: list[float]
    peak: int
    written: float


def cost(sessions: Sequence[Session], *, ladder: bool = False, settles: int = WARM) -> Cost:
    """What a setting costs, seen in several processes.

    Args:
        sessions: What was seen of each of them.
        ladder: Whether the setting measures few steps.
        settles: First steps of a block that count nowhere, but for measured ones among few.
    """
    every = max(block.every for one in sessions for block in one.watched)
    blocks = [block for one in sessions for block in one.watched]
    cpu = _Composed(sessions, "cpu", every, settles, ladder=ladder)
    steps = sum(len(block.steps) for block in blocks)
    return Cost(
        cpu=spread(cpu.typical),
        quiet=spread(cpu.quietest),
        wall=spread(_Composed(sessions, "wall", every, settles, ladder=ladder).typical),
        paired=_paired(sessions, settles),
        unmeasured=cpu.unmeasured,
        measured=cpu.measured,
        every=every,
        around=median(block.around for block in blocks),
        bare=median(step.cpu for one in sessions for step in one.beside(0)),
        steps=steps,
        processes=cpu.quietest,
        peak=max(one.peak for one in sessions),
        written=sum(one.written for one in sessions) / steps,
    )


def _paired(sessions: Sequence[Session], first: int) -> Estimate:
    # Logarithms, since of numbers that vary alike a ratio is greater than 1 on average.
    ratios = [
        _log_of_middle(block.steps[first:] or block.steps)
        - fmean(_log_of_middle(bare) for bare in one.blocks_beside(i))
        for one in sessions
        for i, block in enumerate(one.watched)
    ]
    value, error = midmean(ratios)
    # Two ratios next to each other share one of their two bare blocks: where all blocks vary alike,
    # these correlate by 1/6, and the variance of a mean is greater by twice that.
    return Estimate(exp(value), exp(value) * error * sqrt(4 / 3))


def _log_of_middle(steps: Sequence[Step]) -> float:
    return log(midmean([step.cpu for step in steps]).value)


def midmean(values: Sequence[float]) -> Estimate:
    """The mean of the middle half, for whose error the others count as the nearest of these.

    Of values that vary as normal ones do it varies by an eighth less than the median, and what the
    machine does to a quarter of them on either side moves it no more.

    Source: Tukey and McLaughlin, "Less vulnerable confidence and significance procedures for
    location based on a single sample", 1963.
    """
    ordered, out = sorted(values), len(values) // 4
    kept = ordered[out : len(ordered) - out]
    if len(kept) < 2:
        return Estimate(fmean(kept), nan)
    nearest = [min(max(value, kept[0]), kept[-1]) for value in ordered]
    return Estimate(fmean(kept), stdev(nearest) * sqrt(len(ordered)) / len(kept))


def spread(values: Sequence[float]) -> Ratio:
    """Median and quartiles; a single value is all three."""
    if len(values) < 2:
        return Ratio(*[values[0] if values else float("nan")] * 3)
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Ratio(middle, low, high)


class _Composed:
    """One kind of time, as each process tells it.

    A setting that measures few steps is made of what an unmeasured one takes, which every process
    tells, and what a measured one takes, which all of them tell together, in the proportion of the
    long run.
    """

    def __init__(
        self, sessions: Sequence[Session], kind: str, every: int, first: int, *, ladder: bool
    ) -> None:
        self._kind, self._first = kind, first
        parts = [self._of(one, ladder=ladder) for one in sessions]
        measured = [ratio for one in parts for ratio in one.measured]
        self.measured = mean(measured) if measured else None
        self.unmeasured = None
        self.typical = [mean(one.measured) for one in parts]
        self.quietest = [one.quietest for one in parts]
        if ladder:
            self.unmeasured = median(self.quietest)
            close, share = (self.measured, 1 / every) if self.measured else (0.0, 0.0)
            self.typical = [share * close + (1 - share) * mean(one.unmeasured) for one in parts]
            self.quietest = [share * close + (1 - share) * one for one in self.quietest]

    def _of(self, one: Session, *, ladder: bool) -> _Parts:
        ratios: tuple[list[float], list[float]] = [], []
        quiet: list[float] = []
        saving: list[float] = []
        bare = [getattr(step, self._kind) for step in one.all_bare()]
        for i, block in enumerate(one.watched):
            around = mean([getattr(step, self._kind) for step in one.beside(i)])
            for number, step in enumerate(block.steps):
                is_measured = not ladder or number in (block.measured or ())
                # Of a dense start the later half tells what a measured step takes.
                if number < (DENSE // 2 if ladder and is_measured else self._first):
                    continue
                taken = getattr(step, self._kind)
                ratios[is_measured].append(taken / around)
                if is_measured == (not ladder):
                    (saving if number in block.saved else quiet).append(taken)
        return _Parts(*ratios, _quietest(quiet, saving, bare))


def _quietest(quiet: Sequence[float], saving: Sequence[float], bare: Sequence[float]) -> float:
    """The quietest tenth of some steps over that of bare ones.

    No tenth would hold a step after which many are saved and judged: these count by their mean.
    """
    if not quiet:
        return mean(saving) / tenth(bare)
    share = len(saving) / (len(quiet) + len(saving))
    later = mean(saving) if saving else 0.0
    return ((1 - share) * tenth(quiet) + share * later) / tenth(bare)


class _Parts(NamedTuple):
    """Ratios of one process's steps to the bare ones beside them.

    Attributes:
        unmeasured: Of unmeasured steps.
        measured: Of measured ones; of all of them where all are alike.
        quietest: Of the quietest tenth, and of steps of saving in their proportion: of unmeasured
            steps where few are measured.
    """

    unmeasured: list[float]
    measured: list[float]
    quietest: float


def mean(values: Sequence[float]) -> float:
    """Their mean, with none of them counted as more than some times the median."""
    limit = LIMIT * median(values)
    return fmean(min(value, limit) for value in values)


def tenth(values: Sequence[float]) -> float:
    """The value a tenth of them is below."""
    return quantiles(values, n=10, method="inclusive")[0] if len(values) > 1 else values[0]


# -- budgets -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spent:
    """What a run with a budget has really taken, from when the budget is enforced.

    Attributes:
        budget: The largest fraction it may take.
        since: The step from which it is enforced; None if it is not, and nothing is promised: then
            all is counted from the first step on at which it could be.
        measuring: CPU time that measured steps, and those of saving, took longer than their
            neighbours, as a fraction.
        listening: What unmeasured steps take longer than bare ones, as a fraction.
        reported: What the run says of itself, of both.
        measured: Steps measured.
        steps: Steps seen.
        error: The standard error of `listening`, which is seen in other processes.
    """

    budget: float
    since: int | None
    measuring: float
    listening: float
    reported: float | None
    measured: int
    steps: int
    error: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.measuring + self.listening


def spent(one: Session, budget: float, listening: Estimate) -> Spent:
    """What a budget was really spent.

    Args:
        one: A process with a single block in the setting.
        budget: The largest fraction it may take.
        listening: What an unmeasured step takes longer than a bare one, as a fraction.
    """
    (block,) = one.watched
    measured = block.measured or frozenset()
    busy = measured | block.saved
    exempt = EXEMPT if block.since is None else block.since
    costs: list[float] = []
    for number in sorted(busy):
        if exempt <= number < len(block.steps):
            near = range(max(exempt, number - NEIGHBOURS), number + NEIGHBOURS + 1)
            beside = [block.steps[i].cpu for i in near if i < len(block.steps) and i not in busy]
            costs.append(block.steps[number].cpu - median(beside))
    unmeasured = [step.cpu for i, step in enumerate(block.steps) if i >= exempt and i not in busy]
    typical = median(costs) if costs else 0.0
    taken = sum(min(cost, OUTLIER * typical) if typical > 0 else cost for cost in costs)
    steps = len(block.steps) - exempt
    return Spent(
        budget=budget,
        since=block.since,
        measuring=taken / (steps * mean(unmeasured)),
        listening=listening.value,
        reported=block.reported,
        measured=sum(exempt <= number < len(block.steps) for number in measured),
        steps=steps,
        error=listening.error,
    )


def tried(plan: Plan) -> Session | str:
    """What was seen, or why nothing was."""
    try:
        return session(plan)
    except FailedError as error:
        return str(error)


def bare_step(program: str, threads: int) -> float:
    """CPU seconds of the quickest of some bare steps."""
    return min(
        step.cpu for step in session(Plan(program, "again", 1, 8, 8, threads=threads)).all_bare()
    )
