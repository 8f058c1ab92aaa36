"""What the commands share: opening a run, showing its verdict, and the exit code it deserves."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import TextIO

import typer

from traindx.errors import UsageError
from traindx.findings import Severity
from traindx.run import Run


def open_run(path: Path | None) -> Run:
    """A saved run, by default the last one, judged by the rules as they are now."""
    from traindx.rules.engine import Engine
    from traindx.store.place import latest
    from traindx.store.reader import read

    path = path or latest()
    items, _ = read(path)
    engine = Engine(run=Run(path=path))
    engine.write(items)
    engine.close()
    return engine.run


def prepare() -> None:
    """Import what the end takes now: a script's folder, once first on the path, may shadow it."""
    for name in ("json", "text"):
        import_module(f"traindx.report.{name}")


def show(run: Run, stream: TextIO | None) -> None:
    """Print the verdict for a person."""
    if stream is None:
        return
    from traindx.report import text

    color = text.wants_color(stream, os.environ)
    width = min(shutil.get_terminal_size().columns, 100)
    say(text.render(run, width=width, color=color), stream)


def say(text: str, stream: TextIO | None) -> None:
    """Print a line; a closed, full or missing stream is not worth failing for."""
    if stream is None:
        return
    with contextlib.suppress(OSError, ValueError):
        print(text, file=stream, flush=True)


def write_json(run: Run, target: str) -> None:
    """Write the JSON document to a file, or to standard output for `-`.

    Raises:
        UsageError: The file cannot be written.
    """
    from traindx.report import json

    write(json.render(run), target)


def write(text: str, target: str) -> None:
    """Write a document to a file, or to standard output for `-`.

    Raises:
        UsageError: The file cannot be written.
    """
    if target == "-":
        typer.echo(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write `{target}`: {error.strerror}.") from error


def failed(run: Run, threshold: Severity) -> bool:
    """Whether a finding is as severe as `threshold` or more."""
    worst = run.verdict.worst() if run.verdict else None
    return worst is not None and worst.rank <= threshold.rank


def stderr() -> TextIO | None:
    """Standard error as it is now, which a script may replace later; None if it is closed."""
    return sys.stderr
