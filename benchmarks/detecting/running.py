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
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.detecting.programs import Program

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
    """The outcomes of a results file; a last line that was cut off is left out."""
    found: list[Outcome] = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            found.append(Outcome(**json.loads(line)))
    return found


def line(outcome: Outcome) -> str:
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
    waiting = list(reversed(list(wanted)))
    live: dict[int, _Worker] = {}
    try:
        while waiting or live:
            while waiting and len(live) < workers:
                worker = _Worker(waiting.pop())
                live[worker.pid] = worker
            for pid in [pid for pid, worker in live.items() if worker.has_ended()]:
                worker = live.pop(pid)
                yield worker.job, worker.outcome(source, keep)
            time.sleep(0.02)
    finally:
        for worker in live.values():
            worker.end()


class _Worker:
    """A forked process that runs one job in a folder of its own."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._folder = Path(tempfile.mkdtemp(prefix="detection-"))
        self._deadline = time.monotonic() + PATIENCE
        self._late = False
        self._seconds = 0.0
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _work(job, self._folder)

    def has_ended(self) -> bool:
        """Whether it is done; if it is overdue, it is ended."""
        pid, _, usage = os.wait4(self.pid, os.WNOHANG)
        if pid:
            self._seconds = usage.ru_utime + usage.ru_stime
            return True
        if time.monotonic() > self._deadline and not self._late:
            self._late = True
            self.end()
        return False

    def end(self) -> None:
        """Kill it and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def outcome(self, source: str, keep: Path | None) -> Outcome:
        """What it has written; its folder is removed."""
        job = self.job
        document, failure = self._document()
        findings = [{key: found[key] for key in KEPT} for found in document.get("findings", [])]
        run = document.get("run", {})
        store = self._keep(run.get("store"), keep)
        shutil.rmtree(self._folder, ignore_errors=True)
        return Outcome(
            *(job.program.name, job.program.digest, source, job.seed, job.twin, job.mode),
            findings=findings,
            seconds=round(self._seconds, 3),
            steps=run.get("steps", 0),
            failure=failure,
            store=store,
        )

    def _document(self) -> tuple[dict[str, Any], str]:
        file = self._folder / "document.json"
        if self._late:
            return {}, f"not done after {PATIENCE:.0f} s"
        if file.exists():
            with contextlib.suppress(json.JSONDecodeError):
                return json.loads(file.read_text(encoding="utf-8")), ""
        said = (self._folder / "said").read_text(encoding="utf-8", errors="replace")
        return {}, said.strip()[-300:] or "no document"

    def _keep(self, store: str | None, keep: Path | None) -> str:
        if keep is None or not store or not Path(store).exists():
            return ""
        job = self.job
        parts = (
            job.program.name.replace("/", "-"),
            str(job.seed),
            *["healthy"] * job.twin,
            job.mode,
        )
        keep.mkdir(parents=True, exist_ok=True)
        return str(shutil.move(store, keep / f"{'-'.join(parts)}.traindx"))


def _work(job: Job, folder: Path) -> None:
    """What the child does: the command line, with everything it says in a file; never returns."""
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        said = os.open(folder / "said", os.O_CREAT | os.O_WRONLY, 0o600)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream, number in ((nothing, 0), (nothing, 1), (said, 2)):
            os.dup2(stream, number)
        from traindx.cli.main import main

        sys.argv = ["traindx", *job.words(folder)]
        sys.path[0] = str(folder)
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
