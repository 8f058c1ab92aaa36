"""A training in a process of its own, in blocks of steps: bare, in a setting, bare, and so on.

The blocks of one process train the same tensors at the same places in memory. Two processes that do
the same differ by some percent, by where their memory happens to lie; within one that cancels out.
What does not is how much memory a step gives back and gets again, page by page, which changes by
chance: so the process keeps what it has once got.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.costs.settings import WARM, Setting, step

FIRST = 5
"""Bare steps before anything is timed."""
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # as malloc.h has them


class Step(NamedTuple):
    """What one step took, in seconds."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Plan:
    """The blocks of a process.

    Attributes:
        program: Its name.
        setting: Its name.
        cycles: Blocks in the setting, each after a block of bare steps; one more of these ends it.
        bare: Steps of a bare block.
        steps: Steps of a block in the setting.
        seconds: Elapsed time after which a block in the setting ends, if it has `least` steps.
        least: So many steps it has in any case.
        threads: What torch may use.
    """

    program: str
    setting: str
    cycles: int
    bare: int
    steps: int
    seconds: float = float("inf")
    least: int = WARM + 3
    threads: int = 1


@dataclass(frozen=True)
class Block:
    """Some steps in a row.

    Attributes:
        steps: What each of them took.
        measured: Those of them that were measured, by number; None if all are alike.
        every: One step of how many is measured from here on.
        around: CPU seconds of beginning and ending the setting.
        since: The step from which the run itself says that its budget is enforced.
        reported: What it says it has taken since then, as a fraction.
        saved: The steps after which what had been measured was saved and judged.
    """

    steps: list[Step]
    measured: frozenset[int] | None = None
    every: int = 1
    around: float = 0.0
    since: int | None = None
    reported: float | None = None
    saved: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Session:
    """All that was seen of one process.

    Attributes:
        bare: The bare blocks.
        watched: Those in the setting: the i-th stands between `bare[i]` and `bare[i + 1]`.
        peak: Largest resident memory, in bytes.
        written: Bytes that the setting has left in its folder.
    """

    bare: list[Block]
    watched: list[Block]
    peak: int
    written: int

    def beside(self, i: int) -> list[Step]:
        """The bare steps next to a block in the setting."""
        return _warmed(self.bare[i : i + 2])

    def blocks_beside(self, i: int) -> list[list[Step]]:
        """The same, of each block for itself."""
        return [_warmed([block]) for block in self.bare[i : i + 2]]

    def all_bare(self) -> list[Step]:
        """The bare steps of all blocks."""
        return _warmed(self.bare)


def _warmed(blocks: Sequence[Block]) -> list[Step]:
    """Their steps, without those that warm caches."""
    return [one for block in blocks for one in block.steps[1 + len(block.steps) // 5 :]]


class FailedError(Exception):
    """A setting could not be run."""


def session(plan: Plan) -> Session:
    """Train by the plan in a process forked from this one, which has not trained yet itself.

    Raises:
        FailedError: Why it could not be.
    """
    ours, theirs = Pipe(duplex=False)
    child = os.fork()
    if not child:
        ours.close()
        _child(theirs, plan)
    theirs.close()
    try:
        answer = ours.recv()
    except EOFError:
        answer = "its process has ended"
    finally:
        ours.close()
        os.waitpid(child, 0)
    if isinstance(answer, str):
        raise FailedError(answer)
    return answer


# -- in the process ------------------------------------------------------------------------------


def _child(pipe: Connection, plan: Plan) -> None:
    code = 1
    try:
        keep_memory()
        with TemporaryDirectory() as name:
            folder = Path(name)
            log = os.open(folder.parent / f"{folder.name}.txt", os.O_WRONLY | os.O_CREAT)
            os.unlink(folder.parent / f"{folder.name}.txt")
            for stream in (sys.stdout, sys.stderr):
                os.dup2(log, stream.fileno())  # what other tools print
            try:
                pipe.send(_trained(plan, folder))
            except Exception as error:
                pipe.send(f"{type(error).__name__}: {error}"[:200])
            code = 0
    finally:
        os._exit(code)  # nothing of the process this one is a copy of is to be ended here


def keep_memory() -> None:
    """Give no memory back to the system, where glibc is the C library; see `mallopt(3)`."""
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(_MMAP_MAX, 0)
        change(_TRIM_THRESHOLD, 2**31 - 1)


def _trained(plan: Plan, folder: Path) -> Session:
    import torch

    from benchmarks.costs.peers import CHOICES
    from benchmarks.costs.programs import find

    torch.set_num_threads(plan.threads)
    choice, training = CHOICES[plan.setting], find(plan.program).make()
    nothing = Setting(training, folder)

    def take(setting: Setting) -> Callable[[], None]:
        return lambda: step(training, setting)

    for _ in range(FIRST):
        step(training, nothing)
    bare = [Block(_timed(take(nothing), plan.bare))]
    watched: list[Block] = []
    for _ in range(plan.cycles):
        start = time.process_time()
        setting = choice.attach(training, folder)
        begun = time.process_time() - start
        steps = _timed(take(setting), plan.steps, plan.seconds, plan.least)
        start = time.process_time()
        setting.finish()
        around = begun + time.process_time() - start
        said = (setting.measured, setting.every, around, setting.since, setting.reported)
        watched.append(Block(steps, *said, setting.saved))
        if not choice.leaves:
            break
        bare.append(Block(_timed(take(nothing), plan.bare)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    written = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return Session(bare, watched, peak, written)


def _timed(
    take: Callable[[], None], count: int, seconds: float = float("inf"), least: int = 0
) -> list[Step]:
    taken: list[Step] = []
    start = time.perf_counter()
    while len(taken) < count and (len(taken) < least or time.perf_counter() - start < seconds):
        cpu, wall = time.process_time(), time.perf_counter()
        take()
        taken.append(Step(time.process_time() - cpu, time.perf_counter() - wall))
    return taken
