"""What the commands share: opening a run, showing its verdict, and the exit code it deserves."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

import typer

from traindx.cli.language import spoken
from traindx.config import Config
from traindx.errors import UsageError
from traindx.findings import Severity, Verdict
from traindx.languages import translate
from traindx.messages import say
from traindx.report.untrusted import plain
from traindx.run import Run

NO_TORCH = say(
    "This needs PyTorch, which is not installed here. Install it as your system needs it, for "
    "instance with `pip install torch`."
)


def must_have_torch() -> None:
    """Refuse to begin what cannot be done without it.

    Raises:
        UsageError: It is not installed.
    """
    if find_spec("torch") is None:
        raise UsageError(NO_TORCH)


def must_exist(script: str) -> None:
    """Refuse a script that is not there.

    Raises:
        UsageError: There is nothing of this name.
    """
    if not Path(script).exists():
        raise UsageError(
            say("There is no script `{script}`. Give the path of a Python file.", script=script)
        )


def open_run(path: Path | None, config: Config) -> Run:
    """A saved run, by default the last one, judged by the rules as they are now."""
    from traindx.rules.engine import Engine
    from traindx.store.place import latest
    from traindx.store.reader import Stored

    judging = config.judging()
    path = path or latest(config.runs)
    engine = Engine(run=Run(path=path), judging=judging)
    for stretch in Stored(path):
        engine.replay(stretch)
    engine.close()
    return engine.run


def prepare() -> None:
    """Import what the end takes now: a script's folder, once first on the path, may shadow it."""
    for name in ("json", "text"):
        import_module(f"traindx.report.{name}")
    translate("", spoken())


def show(run: Run, stream: TextIO | None, *, asked: bool = False) -> None:
    """Print the verdict for a person.

    Args:
        run: What is judged.
        stream: Where to; None is nowhere.
        asked: Whether it is what the command is for: then a stream that takes nothing is an error,
            unless its reader has seen enough.
    """
    if stream is None:
        return
    from traindx.report import text

    color = text.wants_color(stream, os.environ)
    report = text.render(run, width=width(), color=color, language=spoken())
    with contextlib.suppress(BrokenPipeError if asked else OSError, ValueError):
        print(encodable(report, stream), file=stream, flush=True)


def width() -> int:
    """Columns to print in: lines that are too long are hard to read."""
    return min(shutil.get_terminal_size().columns, 100)


def tell(text: str, stream: TextIO | None, language: str | None = None) -> None:
    """Print a sentence; a closed, full or missing stream is not worth failing for."""
    if stream is None:
        return
    line = plain(f"traindx: {translate(text, language or spoken())}")
    with contextlib.suppress(OSError, ValueError):
        print(encodable(line, stream), file=stream, flush=True)


def aside() -> AbstractContextManager[object]:
    """What the user's program prints goes to standard error: standard output is the answer's."""
    return contextlib.redirect_stdout(sys.stderr)


def echo(text: str) -> None:
    """Print to standard output, if there is one."""
    typer.echo(encodable(text, sys.stdout))


def encodable(text: str, stream: TextIO | None) -> str:
    """The text with `?` in place of what the stream's encoding does not have."""
    encoding = getattr(stream, "encoding", None)
    if not isinstance(encoding, str):  # a script may have put anything in its place
        return text
    with contextlib.suppress(LookupError):
        return text.encode(encoding, "replace").decode(encoding)
    return text


def write_json(run: Run, target: str) -> None:
    """Write the JSON document to a file, or to standard output for `-`.

    Raises:
        UsageError: The file cannot be written.
    """
    from traindx.report import json

    write(json.render(run), target)


def write_baseline(run: Run, target: str) -> None:
    """Write the findings as a baseline to a file, or to standard output for `-`.

    Raises:
        UsageError: The file cannot be written.
    """
    from traindx.baseline import baseline_text

    write(baseline_text(run.verdict or Verdict()), target)


def must_have_folder(target: str | None) -> None:
    """Refuse a file that cannot be written, before what is to be written has been worked for.

    Raises:
        UsageError: It is a folder, or stands in none.
    """
    if target in (None, "-"):
        return
    path = Path(target).absolute()
    if path.is_dir():
        raise UsageError(
            say("Cannot write `{file}`: it is a folder. Name a file in it.", file=target)
        )
    if not path.parent.is_dir():
        raise UsageError(
            say(
                "Cannot write `{file}`: make the folder `{folder}` first.",
                file=target,
                folder=path.parent,
            )
        )


def write(text: str, target: str) -> None:
    """Write a document to a file, or to standard output for `-`.

    Raises:
        UsageError: The file cannot be written.
    """
    if target == "-":
        typer.echo(text.encode())  # documents are UTF-8 wherever they go
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror
        text = say("Cannot write `{file}`: {reason}.", file=target, reason=reason)
        raise UsageError(text) from error


def failed(run: Run, threshold: Severity) -> bool:
    """Whether a finding is as severe as `threshold` or more."""
    worst = run.verdict.worst() if run.verdict else None
    return worst is not None and worst.rank <= threshold.rank


def stderr() -> TextIO | None:
    """Standard error as it is now, which a script may replace later; None if it is closed."""
    return sys.stderr
