"""Trainings that take turns: each in a process of its own, one at work at a time.

A process of its own keeps what a tool does to torch away from the others, and lets every setting
train on through the whole measurement, as in use.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple


class Step(NamedTuple):
    """What one step took, in seconds."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Ending:
    """What is known at the end.

    Attributes:
        measured: The steps measured; None if all were alike.
        every: One step of how many is measured in the long run.
        finishing: CPU seconds of finishing.
        peak: Largest resident memory of the process, in bytes.
        written: Bytes in its folder.
    """

    measured: set[int] | None
    every: int
    finishing: float
    peak: int
    written: int


class FailedError(Exception):
    """A setting could not be run."""


class Runner:
    """A training in a process of its own, which does nothing until told to."""

    def __init__(self, program: str, setting: str, threads: int = 1) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawning.Pipe()
        arguments = (theirs, program, setting, threads)
        self._process = spawning.Process(target=_child, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._answer()

    def steps(self, count: int) -> list[Step]:
        """Train so many steps."""
        return self._ask(count)

    def finish(self) -> Ending:
        """End the training, and the process."""
        ending = self._ask(0)
        self.stop()
        return ending

    def stop(self) -> None:
        """End the process as it is."""
        self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()

    def _ask(self, count: int) -> Any:
        try:
            self._pipe.send(count)
        except OSError:
            raise FailedError("its process has ended") from None
        return self._answer()

    def _answer(self) -> Any:
        try:
            answer = self._pipe.recv()
        except EOFError:
            self._process.join()
            raise FailedError("its process has ended") from None
        if isinstance(answer, str):
            self._process.join(10)
            raise FailedError(answer)
        return answer


# -- in the process ------------------------------------------------------------------------------


class Clock:
    """`time.perf_counter`, standing still while others have their turn.

    traindx learns what measuring costs from how long steps take; a turn of somebody else must not
    look like a slow step.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._stopped = 0.0
        self._since = 0.0

    def __call__(self) -> float:
        return self._now() - self._stopped

    def stop(self) -> None:
        self._since = self._now()

    def go_on(self) -> None:
        self._stopped += self._now() - self._since


def _child(pipe: Connection, program: str, setting: str, threads: int) -> None:
    clock = Clock(time.perf_counter)
    time.perf_counter = clock  # before traindx is imported
    with TemporaryDirectory() as folder:
        try:
            _serve(pipe, clock, Path(folder), program, setting, threads)
        except EOFError:
            pass  # nobody asks any more
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}"[:200])


def _serve(
    pipe: Connection, clock: Clock, folder: Path, program: str, setting: str, threads: int
) -> None:
    import torch

    from benchmarks.costs.peers import CHOICES
    from benchmarks.costs.programs import find
    from benchmarks.costs.settings import step

    torch.set_num_threads(threads)
    training = find(program).make()
    log = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, sys.stdout.fileno())  # what peers print
    attached = CHOICES[setting].attach(training, folder)
    pipe.send(True)
    clock.stop()
    while count := pipe.recv():
        clock.go_on()
        taken: list[tuple[float, float]] = []
        for _ in range(count):
            cpu, wall = time.process_time(), clock()
            step(training, attached)
            taken.append((time.process_time() - cpu, clock() - wall))
        clock.stop()
        pipe.send([Step(*times) for times in taken])
    clock.go_on()
    start = time.process_time()
    attached.finish()
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    written = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    pipe.send(Ending(attached.measured, attached.every, seconds, peak, written))
