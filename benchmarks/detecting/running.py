"""Runs programs of the zoo under traindx in forked workers that have torch loaded already.

A worker does what the command line does, in a process of its own: `traindx run` watches a whole
training, `traindx preflight --quick` probes it up to the first step. What it costs to import torch
is paid once.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.detecting.programs import Program
from benchmarks.forking import Fork, side_by_side

MODES = ("preflight", "run")
PATIENCE = 300.0
"""Seconds after which a run is given up."""
SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a program, or of its healthy twin, in one mode."""

    program: Program
    seed: int
    twin: bool
    mode: str

    @property
    def key(self) -> tuple[str, str, int, bool, str]:
        """What makes two runs the same; a program that has changed is another."""
        return (self.program.name, self.program.digest, self.seed, self.twin, self.mode)

    def words(self, folder: Path) -> list[str]:
        """The words of the command, which writes into a folder."""
        options = ["--config", os.devnull, "--runs", str(folder / "runs")]
        options += ["--json", str(folder / "document.json")]
        # Measured as by default, but by steps alone, so that a busy machine finds the same.
        options += ["--quiet", "--budget", "1"] if self.mode == "run" else ["--quick"]
        healthy = ["--healthy"] if self.twin else []
        return [self.mode, *options, str(self.program.path), "--seed", str(self.seed), *healthy]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found in one run.

    Attributes:
        program: Its name.
        digest: SHA-256 of its text.
        source: Hash of the traindx that ran it.
        seed: Of its random numbers.
        twin: Whether it was the repaired one.
        mode: `run` or `preflight`.
        findings: In the order of the verdict, the parts of each that are judged.
        seconds: CPU time.
        steps: Optimizer steps.
        failure: Why there is no verdict; empty if there is one.
        store: The run file, if it was kept.
    """

    program: str
    digest: str
    source: str
    seed: int
    twin: bool
    mode: str
    findings: list[dict[str, Any]]
    seconds: float
    steps: int
    failure: str = ""
    store: str = ""

    @property
    def key(self) -> tuple[str, str, int, bool, str]:
        """As that of its job."""
        return (self.program, self.digest, self.seed, self.twin, self.mode)


KEPT = ("code", "severity", "status", "model", "site", "layers", "first_step", "caused_by", "id")


def jobs(some: Iterable[Program], seeds: Iterable[int], modes: Iterable[str]) -> list[Job]:
    """Every run there is to make, seed by seed, so that what is done of many is of all programs."""
    chosen, modes = list(some), list(modes)
    return [
        Job(program, seed, twin, mode)
        for seed in seeds
        for program in chosen
        for twin in ((False, True) if program.is_fault else (False,))
        for mode in modes
    ]


def read(file: Path) -> list[Outcome]:
    """The outcomes of a results file."""
    return [Outcome(**row) for row in rows(file)]


def rows(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of a results file; a last one that was cut off is left out."""
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(text)


def line(outcome: Any) -> str:
    """An outcome as a line of a results file."""
    return json.dumps(asdict(outcome), sort_keys=True) + "\n"


def warm_up() -> None:
    """Import everything that a worker would, and take a step, so that a fork begins at once."""
    import torch
    from torch import nn

    import traindx

    for module in pkgutil.walk_packages(traindx.__path__, "traindx."):
        if "__main__" not in module.name and ".integrations" not in module.name:
            importlib.import_module(module.name)
    importlib.import_module("sklearn.datasets")
    importlib.import_module("torch.utils.data")
    torch.set_num_threads(1)
    model = nn.Linear(2, 2)
    for optimizer in (
        torch.optim.SGD(model.parameters(), 0.1),
        torch.optim.Adam(model.parameters()),
    ):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()


def outcomes(
    wanted: Iterable[Job], workers: int, source: str, keep: Path | None = None
) -> Iterator[tuple[Job, Outcome]]:
    """Run jobs side by side, and give each outcome as it comes."""
    for fork in side_by_side(wanted, workers, _start):
        yield fork.job, _outcome(fork, source, keep)


def _start(job: Job) -> Fork[Job]:
    folder = Path(tempfile.mkdtemp(prefix="detection-"))
    return Fork(job, lambda: _work(job, folder), folder, PATIENCE)


def _outcome(fork: Fork[Job], source: str, keep: Path | None) -> Outcome:
    """What a worker has written; its folder is removed."""
    job = fork.job
    document, failure = _document(fork)
    findings = [{key: found[key] for key in KEPT} for found in document.get("findings", [])]
    run = document.get("run", {})
    store = _keep(job, run.get("store"), keep)
    shutil.rmtree(fork.folder, ignore_errors=True)
    return Outcome(
        *(job.program.name, job.program.digest, source, job.seed, job.twin, job.mode),
        findings=findings,
        seconds=round(fork.seconds, 3),
        steps=run.get("steps", 0),
        failure=failure,
        store=store,
    )


def _document(fork: Fork[Job]) -> tuple[dict[str, Any], str]:
    file = fork.folder / "document.json"
    if fork.late:
        return {}, f"not done after {PATIENCE:.0f} s"
    if file.exists():
        with contextlib.suppress(json.JSONDecodeError):
            return json.loads(file.read_text(encoding="utf-8")), ""
    return {}, fork.said() or "no document"


def _keep(job: Job, store: str | None, keep: Path | None) -> str:
    if keep is None or not store or not Path(store).exists():
        return ""
    name = job.program.name.replace("/", "-")
    parts = (name, str(job.seed), *["healthy"] * job.twin, job.mode)
    keep.mkdir(parents=True, exist_ok=True)
    return str(shutil.move(store, keep / f"{'-'.join(parts)}.traindx"))


def _work(job: Job, folder: Path) -> None:
    """What the child does: the command line."""
    from traindx.cli.main import main

    sys.argv = ["traindx", *job.words(folder)]
    sys.path[0] = str(folder)
    main()
