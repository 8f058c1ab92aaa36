"""The same program run twice, by `python` and by `traindx run`, and what came of it each time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from textwrap import dedent
from typing import Any

TRAINDX = str(Path(sys.executable).with_name("traindx"))
PYTHON = (sys.executable,)
WATCHED = (sys.executable, TRAINDX, "run", "--quiet")

OURS = re.compile(rb"^traindx: .*\n", re.M)


@dataclass(frozen=True)
class Outcome:
    """How a process ended and what it wrote, apart from what traindx said."""

    code: int
    stdout: bytes
    stderr: bytes


def write(path: Path, source: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(source), encoding="utf-8")
    return path


def run(
    command: Sequence[str | bytes | Path],
    cwd: Path,
    *,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    **options: Any,
) -> subprocess.CompletedProcess[bytes]:
    """A command that has ended, one way or the other, within a minute."""
    environment = {**os.environ, **(env or {})}
    return subprocess.run(
        command, cwd=cwd, env=environment, input=stdin, capture_output=True, timeout=60, **options
    )


def outcome(command: Sequence[str | bytes | Path], cwd: Path, **options: Any) -> Outcome:
    done = run(command, cwd, **options)
    return Outcome(done.returncode, done.stdout, OURS.sub(b"", done.stderr))


def twins(cwd: Path, *words: str | bytes | Path, **options: Any) -> tuple[Outcome, Outcome]:
    """The outcome of `python WORDS` and that of `traindx run WORDS`."""
    plain = outcome((*PYTHON, *words), cwd, **options)
    return plain, outcome((*WATCHED, *words), cwd, **options)


def same(cwd: Path, *words: str | bytes | Path, **options: Any) -> Outcome:
    """Both outcomes, which must be one."""
    plain, watched = twins(cwd, *words, **options)
    assert watched == plain, difference(plain, watched)
    return plain


def difference(plain: Outcome, watched: Outcome) -> str:
    """What `traindx run` made different, line by line."""
    before, after = (
        f"exit code {one.code}\n{one.stdout.decode()}\n{one.stderr.decode()}".splitlines()
        for one in (plain, watched)
    )
    return "\n".join(unified_diff(before, after, "python", "traindx run", n=0, lineterm=""))


def signalled(
    command: Sequence[str | Path], cwd: Path, ready: Path, number: signal.Signals
) -> Outcome:
    """The outcome of a program that is sent a signal as soon as it has made the file `ready`."""
    ready.unlink(missing_ok=True)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=cwd, stdout=pipe, stderr=pipe) as process:
        try:
            wait_for(ready, process)
            process.send_signal(number)
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    return Outcome(process.returncode, stdout, OURS.sub(b"", stderr))


def wait_for(ready: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while not ready.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def run_files(folder: Path) -> list[Path]:
    return sorted((folder / "traindx-runs").glob("*.traindx"))


Command = Callable[..., tuple[int, str, str]]
"""Runs the command line in this process: exit code, standard output and error."""
