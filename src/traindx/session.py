"""A recording session: capture wired to its sinks, from the first import of torch to the report."""

from __future__ import annotations

import os
import platform
import re
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakMethod

from traindx import __version__, recording
from traindx.capture.cadence import BUDGET
from traindx.config import Config
from traindx.facts import Json
from traindx.findings import Verdict
from traindx.messages import say
from traindx.on_import import when_imported
from traindx.records import RUN, Event, EventKind, Item, Sink
from traindx.rules.engine import Engine
from traindx.rules.judging import Judging
from traindx.run import Run
from traindx.store.place import FOLDER
from traindx.store.writer import CannotStoreError, Writer, open_writer

if TYPE_CHECKING:
    from torch import nn
    from torch.optim.optimizer import Optimizer

    from traindx.capture.capture import Capture

_SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)
_PATIENCE = 0.25
"""Seconds for which measured steps may wait for others, to be stored and judged with them."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to record.

    Attributes:
        every: Measure exactly every N-th step; None for the ladder with its budget.
        budget: Largest fraction of training time that measuring and listening may take.
        folder: Where run files go.
        command: The command line to note; None notes nothing of it.
        trap_nan: Whether to replay the batch of a loss or gradient that is not finite.
        compiled_activations: Whether to run compiled models eagerly in measured steps.
        first_weights: Whether to store the weights of the first layer.
        judging: What rules to apply, what to pass over, and what is declared; all and nothing if
            None.
    """

    every: int | None = None
    budget: float = BUDGET
    folder: Path = FOLDER
    command: tuple[str, ...] | None = None
    trap_nan: bool = False
    compiled_activations: bool = False
    first_weights: bool = True
    judging: Judging | None = None

    @classmethod
    def of(cls, settings: Config, command: tuple[str, ...] | None = None) -> Options:
        """As the user has set it.

        Raises:
            UsageError: The baseline cannot be read.
        """
        return cls(
            every=settings.every,
            budget=settings.budget,
            folder=settings.runs.absolute(),
            command=command,
            trap_nan=settings.trap_nan,
            compiled_activations=settings.compiled_activations,
            first_weights=settings.first_weights,
            judging=settings.judging(),
        )


class Session:
    """One recorded run.

    Attributes:
        ended: Whether it has been judged to its end.
    """

    def __init__(self, name: str, options: Options, *, warn: Callable[[str], None]) -> None:
        self._run = Run()
        self._options = options
        self._warn = warn
        self._capture: Capture | None = None
        self.ended = False
        self._engine = Engine(run=self._run, judging=options.judging)
        self._pid = os.getpid()
        self._store = self._open_store(name)
        self._write([Event(-1, EventKind.STARTED, RUN, self._header(name))])

    @property
    def run(self) -> Run:
        """What has been measured up to now."""
        if self._capture is not None:
            self._capture.catch_up()
        return self._run

    def start(self) -> None:
        """Watch from the moment the script imports torch."""
        recording.begin(self)
        forked = WeakMethod(self._forked)
        os.register_at_fork(after_in_child=lambda: (method := forked()) and method())
        when_imported("torch", self._arm)

    def expect(self, models: Sequence[nn.Module], optimizers: Sequence[Optimizer]) -> None:
        """These are to be watched; if there are models among them, then no others."""
        if self._capture is not None:
            self._capture.expect(models, optimizers)

    def log(self, values: Mapping[object, object]) -> None:
        """Take numbers that the program logs."""
        if self._capture is not None:  # which takes nothing once it has ended, or in a fork
            self._capture.log(values)

    def _arm(self) -> None:
        if self.ended or self.forked:
            return
        try:
            self._capture = self._listening()
        except Exception as error:  # the script's own import of torch must not fail for us
            self._warn(
                say(
                    "This version of torch cannot be watched: {error}. Training goes on.",
                    error=repr(error),
                )
            )

    def _listening(self) -> Capture:
        import torch

        from traindx.capture.capture import Capture

        versions = {**_versions(), "torch": str(torch.__version__)}
        self._write([Event(-1, EventKind.STARTED, RUN, {"versions": versions})])
        options = self._options
        capture = Capture(
            self._sinks(),
            every=options.every,
            budget=options.budget,
            trap_nan=options.trap_nan,
            compiled_activations=options.compiled_activations,
            first_weights=options.first_weights,
            warn=self._warn,
            patience=_PATIENCE,
        )
        capture.arm()
        return capture

    def finish(self, exit_code: int | None) -> Run:
        """Stop watching, judge, and save the verdict; without any training nothing is kept."""
        recording.end(self)
        if self.ended or self.forked:
            return self.run
        self.ended = True
        try:
            self._conclude(exit_code)
        except Exception as error:  # the script has run, and its exit code stands
            self._warn(say("The run could not be judged to its end: {error}.", error=repr(error)))
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
            self._run.path = None

    def judge(self) -> Verdict:
        """What the rules say so far, up to the last measured step that is complete."""
        run = self.run
        if run.verdict is None or not self.ended:
            run.verdict = self._engine.verdict
        return run.verdict

    @property
    def forked(self) -> bool:
        """Whether this process is a child of the one that records."""
        return os.getpid() != self._pid

    @property
    def begun(self) -> bool:
        """Whether a backward pass has been seen by now."""
        return self._capture is not None and self._capture.backwards > 0

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
            self._warn(
                say(
                    "{error} Nothing will be saved; findings are shown at the end.",
                    error=error.message,
                )
            )
            return None
        self._run.path = store.path
        return store

    def _header(self, name: str) -> dict[str, Json]:
        command, judging = self._options.command, self._options.judging
        return {
            "id": secrets.token_hex(8),
            "script": name,
            "command": None if command is None else list(redacted(command)),
            "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "versions": _versions(),
            "platform": sys.platform,
            "every": self._options.every,
            "budget": self._options.budget,
            "contexts": [name for name, _ in judging.contexts] if judging else [],
        }

    def _forked(self) -> None:
        """A forked worker shares the run file's descriptor: it must neither watch nor write."""
        recording.end(self)
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
