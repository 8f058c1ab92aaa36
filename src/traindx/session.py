"""A recording session: capture wired to its sinks, from the first import of torch to the report."""

from __future__ import annotations

import os
import platform
import re
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakMethod

from traindx import __version__
from traindx.facts import Json
from traindx.on_import import when_imported
from traindx.records import RUN, Event, EventKind, Item, Sink
from traindx.rules.engine import Engine
from traindx.run import Run
from traindx.store.writer import CannotStoreError, Writer, open_writer

if TYPE_CHECKING:
    from traindx.capture.capture import Capture

_SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Options:
    """How to record.

    Attributes:
        every: Measure exactly every N-th step; None for the ladder with its budget.
        budget: Largest fraction of training time that measuring may take.
        folder: Where run files go.
        command: The command line to note; None notes nothing of it.
    """

    every: int | None = None
    budget: float = 0.03
    folder: Path = Path("traindx-runs")
    command: tuple[str, ...] | None = None


class Session:
    """One recorded run.

    Attributes:
        run: What has been measured, growing.
    """

    def __init__(self, name: str, options: Options, *, warn: Callable[[str], None]) -> None:
        self.run = Run()
        self._options = options
        self._warn = warn
        self._capture: Capture | None = None
        self._ended = False
        self._engine = Engine(run=self.run)
        self._pid = os.getpid()
        self._store = self._open_store(name)
        self._write([Event(-1, EventKind.STARTED, RUN, self._header(name))])

    def start(self) -> None:
        """Watch from the moment the script imports torch."""
        forked = WeakMethod(self._forked)
        os.register_at_fork(after_in_child=lambda: (method := forked()) and method())
        when_imported("torch", self._arm)

    def _arm(self) -> None:
        if self._ended or self.forked:
            return
        try:
            self._capture = self._listening()
        except Exception as error:  # the script's own import of torch must not fail for us
            self._warn(f"This version of torch cannot be watched: {error!r}. Training goes on.")

    def _listening(self) -> Capture:
        import torch

        from traindx.capture.capture import Capture

        versions = {**_versions(), "torch": str(torch.__version__)}
        self._write([Event(-1, EventKind.STARTED, RUN, {"versions": versions})])
        options = self._options
        capture = Capture(
            self._sinks(), every=options.every, budget=options.budget, warn=self._warn
        )
        capture.arm()
        return capture

    def finish(self, exit_code: int | None) -> Run:
        """Stop watching, judge, and save the verdict; without any training nothing is kept."""
        self._ended = True
        try:
            self._conclude(exit_code)
        except Exception as error:  # the script has run, and its exit code stands
            self._warn(f"The run could not be judged to its end: {error!r}.")
        return self.run

    def _conclude(self, exit_code: int | None) -> None:
        if self._capture is not None:
            self._capture.close(exit_code)
        else:
            self._write([Event(0, EventKind.ENDED, RUN, {"exit_code": exit_code, "steps": 0})])
        self._engine.close()
        if self._store is not None:
            self._save(self._store)

    def _save(self, store: Writer) -> None:
        """Keep the run file; one without training would be what `check` judges by default."""
        if self.trained:
            store.write_verdict(self._engine.verdict)
            store.close()
        else:
            store.discard()
            self.run.path = None

    def __enter__(self) -> Session:
        self.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self.finish(0 if error is None else 1)

    @property
    def forked(self) -> bool:
        """Whether this process is a child of the one that records."""
        return os.getpid() != self._pid

    @property
    def trained(self) -> bool:
        """Whether any training was seen."""
        backwards = self.run.header.get("backwards")
        return self.run.steps > 0 or bool(backwards)

    def _sinks(self) -> Sequence[Sink]:
        return [self._engine] if self._store is None else [self._store, self._engine]

    def _write(self, items: Sequence[Item]) -> None:
        for sink in self._sinks():
            sink.write(items)

    def _open_store(self, name: str) -> Writer | None:
        try:
            store = open_writer(self._options.folder, name, datetime.now(), warn=self._warn)
        except CannotStoreError as error:
            self._warn(f"{error} Nothing will be saved; findings are shown at the end.")
            return None
        self.run.path = store.path
        return store

    def _header(self, name: str) -> dict[str, Json]:
        command = self._options.command
        return {
            "id": secrets.token_hex(8),
            "script": name,
            "command": None if command is None else list(redacted(command)),
            "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "versions": _versions(),
            "platform": sys.platform,
            "every": self._options.every,
            "budget": self._options.budget,
        }

    def _forked(self) -> None:
        """A forked worker shares the run file's descriptor: it must neither watch nor write."""
        if self._capture is not None:
            self._capture.disarm()
        self._engine = Engine(rules=())
        self._store = None


def _versions() -> dict[str, Json]:
    return {"traindx": __version__, "python": platform.python_version()}


def redacted(command: Sequence[str]) -> list[str]:
    """A command line without the values of arguments that look like secrets."""
    shown: list[str] = []
    hide = False
    for word in command:
        name, equals, _ = word.partition("=")
        secret = bool(_SECRET.search(name)) and (name.startswith("-") or bool(equals))
        shown.append("[redacted]" if hide else f"{name}=[redacted]" if secret and equals else word)
        hide = secret and not equals
    return shown


def run_name(target: str) -> str:
    """The stem of the run file for a script or module."""
    return Path(target).stem if target.endswith(".py") else Path(target).name or "run"


def watch(
    name: str = "notebook",
    *,
    every: int | None = None,
    budget: float = 0.03,
    folder: str | Path = "traindx-runs",
) -> Session:
    """Watch the training inside a `with` block, in a notebook or in one's own program.

    Args:
        name: Stem of the run file.
        every: Measure exactly every N-th step; None for the ladder with its budget.
        budget: Largest fraction of training time that measuring may take.
        folder: Where the run file goes.
    """
    options = Options(every, budget, Path(folder))
    return Session(name, options, warn=lambda text: print(f"traindx: {text}", file=sys.stderr))
