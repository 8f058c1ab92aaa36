"""Runs programs of the zoo under the tools of others, in forked workers."""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.detecting.programs import Program
from benchmarks.detecting.running import rows
from benchmarks.forking import Fork, side_by_side
from benchmarks.peering.tools import TOOLS, Anomaly
from benchmarks.peering.watching import Watch

PATIENCE = 300.0
"""Seconds after which a run is given up."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a program, or of its healthy twin, under the tools of one group."""

    program: Program
    seed: int
    twin: bool
    tools: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, int, bool]:
        """What makes two runs the same, but for the tools."""
        return (self.program.name, self.program.digest, self.seed, self.twin)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one tool said of one run.

    Attributes:
        program: Its name.
        digest: SHA-256 of its text.
        seed: Of its random numbers.
        twin: Whether it was the repaired one.
        tool: Its key in `TOOLS`.
        version: Of the tool.
        alarms: By what was said: the step it was first said at, and the places it named.
        failure: Why it said no more, or how it ended the program; empty if it did neither.
        steps: Optimizer steps it saw.
        seconds: CPU time of the run, shared with the tools that watched it, too.
    """

    program: str
    digest: str
    seed: int
    twin: bool
    tool: str
    version: str
    alarms: dict[str, dict[str, Any]]
    failure: str
    steps: int
    seconds: float

    @property
    def key(self) -> tuple[str, str, int, bool]:
        """As that of its job."""
        return (self.program, self.digest, self.seed, self.twin)


def jobs(
    some: Iterable[Program], seeds: Iterable[int], tools: Iterable[str], known: Iterable[Outcome]
) -> list[Job]:
    """Every run there is to make, tools that watch together in one, without what is known."""
    done = {(outcome.key, outcome.tool) for outcome in known}
    groups: dict[str, list[str]] = {}
    for tool in tools:
        groups.setdefault(TOOLS[tool].group, []).append(tool)
    chosen = list(some)
    every = (
        Job(program, seed, twin, tuple(group))
        for seed in seeds
        for group in groups.values()
        for program in chosen
        for twin in ((False, True) if program.is_fault else (False,))
    )
    left = (
        replace(job, tools=tuple(tool for tool in job.tools if (job.key, tool) not in done))
        for job in every
    )
    return [job for job in left if job.tools]


def outcomes(wanted: Iterable[Job], workers: int) -> Iterator[tuple[Job, list[Outcome]]]:
    """Run jobs side by side, and give what each tool said as it comes.

    One group of tools after the other, since some change torch as soon as they are used.
    """
    groups: dict[str, list[Job]] = {}
    for job in wanted:
        groups.setdefault(TOOLS[job.tools[0]].group, []).append(job)
    for group in groups.values():
        warm_up(dict.fromkeys(tool for job in group for tool in job.tools))
        yield from _of_group(group, workers)


def _of_group(wanted: Iterable[Job], workers: int) -> Iterator[tuple[Job, list[Outcome]]]:
    """Of a run that a tool has ended, the others are told by another one without it."""
    again: list[Job] = []
    for fork in side_by_side(wanted, workers, _start):
        job, said = fork.job, _read(fork)
        shutil.rmtree(fork.folder, ignore_errors=True)
        ended = [it for it in said if it.tool == "anomaly" and it.alarms]
        others = [tool for tool in job.tools if tool != "anomaly"]
        if ended and others:
            again.append(replace(job, tools=tuple(others)))
            yield job, ended
        elif len(said) > 1 and all(it.failure for it in said):
            again += [replace(job, tools=(tool,)) for tool in job.tools]
        else:
            yield job, said
    if again:
        yield from _of_group(again, workers)


def _start(job: Job) -> Fork[Job]:
    folder = Path(tempfile.mkdtemp(prefix="peers-"))
    return Fork(job, lambda: watch(job, folder / "said.json"), folder, PATIENCE)


def watch(job: Job, file: Path) -> None:
    """Run a program in this process, as its command line would, and write what was said of it."""
    sys.argv = [str(job.program.path), "--seed", str(job.seed), *["--healthy"] * job.twin]
    warnings.simplefilter("default")
    ended = ""
    with Watch([TOOLS[tool].peer for tool in job.tools]) as watch:
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as error:
            ended = f"exit code {error.code}" if error.code else ""
        except Exception as error:
            if not any(isinstance(p, Anomaly) and p.raised(error) for p in watch.peers):
                ended = f"{type(error).__name__}: {error}"[:200]
    said = {
        tool: {
            "alarms": {
                code: {"step": step, "sites": sorted(sites)}
                for code, (step, sites) in peer.alarms.items()
            },
            "failure": peer.failure or ended,
            "steps": watch.steps,
        }
        for tool, peer in zip(job.tools, watch.peers, strict=True)
    }
    file.write_text(json.dumps(said), encoding="utf-8")


def _read(fork: Fork[Job]) -> list[Outcome]:
    job, file = fork.job, fork.folder / "said.json"
    said: dict[str, Any] = {}
    failure = f"not done after {PATIENCE:.0f} s" if fork.late else fork.said() or "nothing written"
    if file.exists():
        said = json.loads(file.read_text(encoding="utf-8"))
    nothing = {"alarms": {}, "failure": failure, "steps": 0}
    return [
        Outcome(
            *(*job.key, tool, TOOLS[tool].version()),
            **said.get(tool, nothing),
            seconds=round(fork.seconds, 3),
        )
        for tool in job.tools
    ]


def read(file: Path) -> list[Outcome]:
    """The outcomes of a results file."""
    return [Outcome(**row) for row in rows(file)]


def warm_up(tools: Iterable[str]) -> None:
    """Import what a worker would, and use it once, so that a fork begins at once."""
    import sklearn.datasets
    import torch
    import torch.utils.data
    from torch import nn

    assert sklearn.datasets
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    used = [TOOLS[tool].peer for tool in tools]
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        with Watch(used):
            optimizer = torch.optim.Adam(model.parameters())
            model(torch.ones(4, 2)).sum().backward()
            optimizer.step()
        os.chdir(here)
