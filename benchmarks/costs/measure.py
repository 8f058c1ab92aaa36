"""Compare settings turn by turn, and what is made of the times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import NamedTuple

from benchmarks.costs.settings import BARE
from benchmarks.costs.turns import Ending, FailedError, Runner, Step

WARM = 10
"""First steps, which warm caches and which traindx measures closely: not in any median."""


class Turn(NamedTuple):
    """A block of steps, numbered from `first`, and the bare ones right before and after.

    The first steps of a block find caches and memory full of what others have left there: `warming`
    of them count in sums only. The bare blocks come without theirs.
    """

    first: int
    steps: list[Step]
    around: list[Step]
    warming: int = 1


@dataclass
class Trial:
    """Everything measured of one setting.

    Attributes:
        failed: Why it could not be run, if so.
    """

    turns: list[Turn] = field(default_factory=list)
    ending: Ending | None = None
    failed: str = ""


class Ratio(NamedTuple):
    """A ratio to the bare training, with its quartiles over the turns."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True)
class Cost:
    """What a setting costs, in bare steps.

    Attributes:
        cpu: CPU time in the long run: of unmeasured and measured steps in their proportion.
        quiet: The same from the quietest tenth of the steps, over all turns.
        wall: The same of elapsed time.
        unmeasured: CPU time of an unmeasured step; None where there is none.
        measured: CPU time of a measured step; None where none was seen.
        every: One step of how many is measured in the long run.
        total: CPU time of all steps seen together, the first ones and the end with them.
        bare: CPU seconds of the bare step beside it.
        steps: Steps seen.
        ending: What was known at the end.
    """

    cpu: Ratio
    quiet: float
    wall: Ratio
    unmeasured: float | None
    measured: float | None
    every: int
    total: float
    bare: float
    steps: int
    ending: Ending

    @property
    def unmeasured_us(self) -> float | None:
        """What an unmeasured step takes longer, in microseconds of CPU time."""
        return None if self.unmeasured is None else 1e6 * self.bare * (self.unmeasured - 1)

    @property
    def measured_us(self) -> float | None:
        """What a measured step takes longer, in microseconds of CPU time."""
        return None if self.measured is None else 1e6 * self.bare * (self.measured - 1)


def in_turns(
    program: str,
    settings: Sequence[str],
    *,
    turns: int,
    seconds: float,
    least: dict[str, int] | None = None,
    threads: int = 1,
) -> dict[str, Trial]:
    """Train the program in each setting, a block after another, a bare block between any two.

    Args:
        program: Its name.
        settings: Their names.
        turns: Blocks of each setting.
        seconds: About how long a block of bare steps takes.
        least: Steps a setting must take altogether.
        threads: What torch may use.
    """
    trials = {name: Trial() for name in settings}
    bare = Runner(program, BARE, threads)
    runners: dict[str, Runner] = {}
    for name in settings:
        if runner := _begin(program, name, threads, trials):
            runners[name] = runner
    bare.steps(3)
    size = max(2, round(seconds / min(step.wall for step in bare.steps(5))))
    needed = {name: -(-steps // turns) for name, steps in (least or {}).items()}
    taken = dict.fromkeys(settings, 0)
    warming = 1 + size // 4
    before = bare.steps(warming + size)[warming:]
    for turn in range(turns):
        order = list(runners)
        order = order[turn % len(order) :] + order[: turn % len(order)] if order else []
        for name in order:
            count = max(_fitting(size, seconds, trials[name]), needed.get(name, 0)) + warming
            try:
                steps = runners[name].steps(count)
            except FailedError as error:
                trials[name].failed = str(error)
                runners.pop(name).stop()
                continue
            after = bare.steps(warming + size)[warming:]
            trials[name].turns.append(Turn(taken[name], steps, [*before, *after], warming))
            taken[name] += count
            before = after
    for name, runner in runners.items():
        _end(trials[name], runner)
    bare.finish()
    return trials


def _fitting(size: int, seconds: float, trial: Trial) -> int:
    """Steps of a block: fewer of a setting that takes many times as long as bare training."""
    if not trial.turns:
        return size
    wall = median(step.wall for step in trial.turns[-1].steps)
    return max(2, min(size, round(3 * seconds / wall)))


def _begin(program: str, name: str, threads: int, trials: dict[str, Trial]) -> Runner | None:
    try:
        return Runner(program, name, threads)
    except FailedError as error:
        trials[name].failed = str(error)
        return None


def _end(trial: Trial, runner: Runner) -> None:
    try:
        trial.ending = runner.finish()
    except FailedError as error:
        trial.failed = str(error)


def cost(trial: Trial) -> Cost | None:
    """What one setting costs; None if too little was seen of it."""
    ending = trial.ending
    if ending is None or not trial.turns:
        return None
    cpu = _Composed(trial, ending, "cpu")
    wall = _Composed(trial, ending, "wall")
    steps = [step.cpu for turn in trial.turns for step in turn.steps]
    base = sum(len(turn.steps) * _mean(step.cpu for step in turn.around) for turn in trial.turns)
    return Cost(
        cpu=cpu.ratio,
        quiet=cpu.quiet,
        wall=wall.ratio,
        unmeasured=cpu.unmeasured,
        measured=cpu.measured,
        every=ending.every,
        total=(sum(steps) + ending.finishing) / base,
        bare=median(step.cpu for turn in trial.turns for step in turn.around),
        steps=len(steps),
        ending=ending,
    )


class _Composed:
    """One kind of time, made of medians within each turn.

    A setting that measures few steps is made of what an unmeasured one takes, which every turn
    tells, and what a measured one takes, which only some do, in the proportion of the long run.
    """

    def __init__(self, trial: Trial, ending: Ending, kind: str) -> None:
        self._kind = kind
        quiet: list[float] = []
        close: list[float] = []
        seen: tuple[list[float], list[float]] = [], []
        around: list[float] = []
        for turn in trial.turns:
            base = median(getattr(step, kind) for step in turn.around)
            of_quiet, of_close = self._split(turn, ending)
            seen[0].extend(of_quiet)
            seen[1].extend(of_close)
            around += [getattr(step, kind) for step in turn.around]
            if of_quiet:
                quiet.append(median(of_quiet) / base)
            if of_close and ending.every == 1:
                close.append(median(of_close) / base)
            elif of_close:
                close += [taken / base for taken in of_close]
        self.unmeasured = median(quiet) if quiet else None
        self.measured = median(close) if close else None
        self.ratio = self._ratio(quiet, close, ending.every)
        share = (1 / ending.every if seen[0] else 1.0) if seen[1] else 0.0
        parts = _tenth(seen[0]) * (1 - share), _tenth(seen[1]) * share
        self.quiet = sum(parts) / _tenth(around)

    def _split(self, turn: Turn, ending: Ending) -> tuple[list[float], list[float]]:
        parts: tuple[list[float], list[float]] = [], []
        for number, step in enumerate(turn.steps, turn.first):
            is_measured = ending.every == 1 or number in (ending.measured or ())
            if number >= turn.first + turn.warming and (
                number >= WARM or (is_measured and number >= WARM // 2)
            ):
                parts[is_measured].append(getattr(step, self._kind))
        return parts

    def _ratio(self, quiet: list[float], close: list[float], every: int) -> Ratio:
        share = (1 / every if quiet else 1.0) if close else 0.0
        fixed = share * median(close) if quiet and close else 0.0
        turns = [fixed + (1 - share) * one for one in quiet] if quiet else close
        if not turns:
            return Ratio(float("nan"), float("nan"), float("nan"))
        low, middle, high = quantiles(turns, n=4) if len(turns) > 1 else turns * 3
        return Ratio(middle, low, high)


def _tenth(values: Sequence[float]) -> float:
    """The value a tenth of them is below; zero of none."""
    return sorted(values)[len(values) // 10] if values else 0.0


def _mean(values: Iterable[float]) -> float:
    taken = [*values]
    return sum(taken) / len(taken)
