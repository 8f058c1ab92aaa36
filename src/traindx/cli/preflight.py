"""`traindx preflight`: probe a training before it is run."""

from __future__ import annotations

import contextlib
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from traindx.cli import options, outcome
from traindx.cli.language import Lang, spoken
from traindx.errors import UsageError
from traindx.findings import Severity
from traindx.messages import Message, counted, say
from traindx.run import Run

if TYPE_CHECKING:
    from traindx.config import Config
    from traindx.preflight.case import Case
    from traindx.preflight.runner import Plan
    from traindx.store.writer import Writer

MOST_OF_NAME = 80
"""Characters of a name, so that what follows it is in the name of the file, too."""


def preflight(
    context: typer.Context,
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET [ARGS]...",
            help="A script and its arguments, `package.module:name` or `file.py:name`.",
        ),
    ] = None,
    module: options.Module = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the probes that train.")
    ] = False,
    shape: Annotated[
        str | None,
        typer.Option(metavar="SHAPE", help="Of a standard normal batch, as `64x1x28x28`."),
    ] = None,
    width_argument: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The argument of the target that says how wide the model is."
        ),
    ] = None,
    json: options.Json = None,
    html: Annotated[
        str | None, typer.Option("--html", "-o", metavar="FILE", help="Write the page.")
    ] = None,
    runs: options.Runs = None,
    command: options.Command = True,
    first_weights: options.FirstWeights = None,
    fail_on: options.FailOn = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    contexts: options.Contexts = None,
    baseline: options.Baseline = None,
    config: options.ConfigFile = None,
    lang: Lang = None,
) -> None:
    """Probe a training before it is run; exit 0 if clean, 1 on findings, 2 on unusable input."""
    words = _words(target, module=module)
    settings = options.load(
        config,
        select=select,
        ignore=ignore,
        contexts=contexts,
        baseline=baseline,
        runs=runs,
        fail_on=fail_on,
        first_weights=first_weights,
    )
    report = _Report(settings, _file(json), _file(html), words if command else None)
    outcome.prepare()
    if is_named(words, module=module):
        report.finish(_of_target(words[0], shape, width_argument, report, quick=quick))
    else:
        misplaced = options.misplaced(context, words[1:])
        _of_script(words, report, misplaced, module=module, quick=quick)


def is_named(words: list[str], *, module: bool) -> bool:
    """Whether a target names a model in a file or module, and no script."""
    return not module and ":" in Path(words[0]).name and not Path(words[0]).exists()


def _of_target(
    target: str, shape: str | None, width: str | None, report: _Report, *, quick: bool
) -> Run:
    from traindx.preflight.scripts import apart
    from traindx.preflight.targets import case_named

    with apart():
        case = case_named(target, shape=shape, width_argument=width)
        return report.checked(case, _name(target), quick=quick)


def _of_script(
    words: list[str], report: _Report, misplaced: Message, *, module: bool, quick: bool
) -> None:
    from traindx.preflight.scripts import Script, apart
    from traindx.script import run_module, run_script
    from traindx.session import run_name

    language = spoken()
    path, args = words[0], words[1:]
    codes: list[int] = []

    def look(case: Case) -> Run:
        return report.checked(case, run_name(path), quick=quick)

    with apart() as stream:

        def insist(run: Run) -> None:
            report.write(run, stream, language)
            os._exit(report.exit_code(run))

        script = Script(look, insist)

        def start() -> int:
            codes.append((run_module if module else run_script)(path, args))
            return codes[0]

        try:
            judged = script.to_first_step(start)
        except UsageError as error:
            if codes == [options.REFUSED] and misplaced:
                raise UsageError(misplaced) from error
            raise
    report.finish(judged)


def _name(target: str) -> str:
    """What a run of `file.py:name` or `package.module:name` is called."""
    file, _, name = Path(target).name.rpartition(":")
    return f"{file.removesuffix('.py')}-{name}"


class _Report:
    """Where what was found goes."""

    def __init__(
        self, settings: Config, json: str | None, html: str | None, command: list[str] | None
    ) -> None:
        self.settings = settings
        self._judging = settings.judging()
        self._json = json
        self._html = html
        self._folder = settings.runs.absolute()  # the script may change to another
        self._command = command
        self._stderr = outcome.stderr()
        self._language = spoken()

    def checked(self, case: Case, name: str, *, quick: bool) -> Run:
        """Probe and judge a case, saved as the run file of what is called so."""
        from traindx.preflight.checking import check
        from traindx.session import redacted

        return check(
            case,
            quick=quick,
            first_weights=self.settings.first_weights,
            judging=self._judging,
            script=name,
            command=None if self._command is None else redacted(self._command),
            tell=lambda plan: self._tell(planned(plan)),
            store=self._store(name),
        )

    def _store(self, name: str) -> Writer | None:
        from traindx.store.writer import CannotStoreError, open_writer

        stem = f"{name[:MOST_OF_NAME]}-preflight"
        try:
            return open_writer(self._folder, stem, datetime.now(), warn=self._tell)
        except CannotStoreError as error:
            self._tell(
                say(
                    "{error} Nothing will be saved; findings are shown at the end.",
                    error=error.message,
                )
            )
            return None

    def _tell(self, text: str) -> None:
        outcome.tell(text, self._stderr, self._language)

    def finish(self, run: Run) -> None:
        """Write everything, and leave with the exit code that it deserves."""
        self.write(run, sys.stdout, self._language)
        raise typer.Exit(self.exit_code(run))

    def write(self, run: Run, stream: TextIO | None, language: str) -> None:
        """Write what was asked for: the documents, and the text if standard output is free."""
        if self._html is not None:
            from traindx.report.html.page import render

            outcome.write(render(run, language), self._html)
        if self._json == "-":
            from traindx.report import json

            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    print(json.render(run), file=stream, flush=True)
            return
        if self._json is not None:
            outcome.write_json(run, self._json)
        outcome.show(run, stream)

    def exit_code(self, run: Run) -> int:
        """0 if there is no finding that fails it, else 1."""
        return int(outcome.failed(run, self.settings.fail_on or Severity.ERROR))


def planned(plan: Plan) -> Message:
    """What is about to be done, in one sentence."""
    probes = counted(plan.probes, "{n} probe", "{n} probes")
    took = say(
        "{probes}, about {seconds:.1f} s ({least:.1f} to {most:.1f} s)",
        probes=probes,
        seconds=plan.seconds,
        least=plan.least,
        most=plan.most,
    )
    left = len(plan.planned) - plan.probes
    if not left:
        return say("{cost}.", cost=took)
    return say("{cost}; {left} cannot look or are left out.", cost=took, left=left)


def _file(name: str | None) -> str | None:
    """The file wherever the script may change to."""
    return name if name in (None, "-") else str(Path(name).absolute())


def _words(target: list[str] | None, *, module: bool) -> list[str]:
    outcome.must_have_torch()
    if not target:
        raise UsageError(
            say(
                "`traindx preflight` needs a script or a target: `traindx preflight train.py`, "
                "`traindx preflight package.module:name`."
            )
        )
    if not (module or is_named(target, module=module)):
        outcome.must_exist(target[0])
    return target
