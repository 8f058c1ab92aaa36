"""`traindx run`: train as `python SCRIPT` would, watched, and say what is wrong at the end."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated, TextIO

import typer

from traindx.cli import options, outcome
from traindx.cli.language import Lang, spoken
from traindx.errors import UsageError
from traindx.findings import Severity
from traindx.messages import say
from traindx.run import Run


def run(
    context: typer.Context,
    script: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCRIPT [ARGS]...", help="A Python script and its arguments."),
    ] = None,
    module: options.Module = False,
    every: Annotated[
        int | None,
        typer.Option(help="Measure exactly every N-th step, whatever it costs."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help="Largest fraction of the time for measuring and listening; 0.03 by default."
        ),
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the verdict as JSON.")
    ] = None,
    fail_on: Annotated[
        Severity | None,
        typer.Option(help="Exit with 1 if the script succeeds but a finding is this severe."),
    ] = None,
    runs: options.Runs = None,
    command: options.Command = True,
    first_weights: options.FirstWeights = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no findings.")] = False,
    trap_nan: Annotated[
        bool,
        typer.Option(
            "--trap-nan", help="Replay the first batch with a NaN to see where it is from."
        ),
    ] = False,
    compiled_activations: Annotated[
        bool,
        typer.Option(
            "--compiled-activations",
            help="Run compiled models eagerly in measured steps; losses agree to rounding only.",
        ),
    ] = False,
    select: options.Select = None,
    ignore: options.Ignore = None,
    contexts: options.Contexts = None,
    baseline: options.Baseline = None,
    config: options.ConfigFile = None,
    lang: Lang = None,
) -> None:
    """Run a script unchanged, watch its training, and say what is wrong with it."""
    target, args = _target(script, module=module)
    settings = options.load(
        config,
        select=select,
        ignore=ignore,
        contexts=contexts,
        baseline=baseline,
        every=every,
        budget=budget,
        runs=runs,
        fail_on=fail_on,
        trap_nan=trap_nan or None,
        compiled_activations=compiled_activations or None,
        first_weights=first_weights,
    )
    document = None if json is None else _document(json)
    stream, language = outcome.stderr(), spoken()
    outcome.prepare()

    from traindx.script import exit_as, run_module, run_script
    from traindx.session import Options, Session, run_name

    session = Session(
        run_name(target),
        Options.of(settings, (target, *args) if command else None),
        warn=lambda text: outcome.tell(text, stream, language),
    )
    session.start()
    try:
        code = run_module(target, args) if module else run_script(target, args)
    except UsageError:  # there was nothing to run
        session.finish(None)
        raise
    if session.forked:  # a child of the script's own `os.fork` that has come this far
        exit_as(code)
    judged = session.finish(code if code >= 0 else 128 - code)  # as a shell counts signals
    with contextlib.suppress(AttributeError, OSError, ValueError):  # it may be closed, or replaced
        sys.stdout.flush()
    misplaced = options.misplaced(context, args) if code == options.REFUSED else ""
    try:
        if misplaced and not session.trained:
            outcome.tell(misplaced, stream, language)
        _tell(judged, stream, trained=session.trained, quiet=quiet, document=document)
    except Exception as error:  # the script has run, and its exit code stands
        text = error.message if isinstance(error, UsageError) else repr(error)
        outcome.tell(text, stream, language)
    threshold = settings.fail_on
    exit_as(1 if code == 0 and threshold and outcome.failed(judged, threshold) else code)


def _document(json: str) -> str:
    """Where the document goes, wherever the script may change to; it must be possible there."""
    if json == "-":
        raise UsageError(say("Standard output is the script's: give `--json` a file."))
    outcome.must_have_folder(json)
    return str(Path(json).absolute())


def _tell(
    judged: Run, stream: TextIO | None, *, trained: bool, quiet: bool, document: str | None
) -> None:
    """Show the verdict, and write it where it was asked for."""
    if not trained:
        text = say(
            "no training was seen: the script's process ran no backward pass and no optimizer step."
        )
        outcome.tell(text, stream)
    elif not quiet:
        outcome.show(judged, stream)
    if document is not None:
        outcome.write_json(judged, document)


def _target(words: list[str] | None, *, module: bool) -> tuple[str, list[str]]:
    """What to run, and its arguments."""
    outcome.must_have_torch()
    if not words:
        example = "traindx run -m package.train" if module else "traindx run train.py"
        raise UsageError(say("`traindx run` needs a script: `{example}`.", example=example))
    if not module:
        outcome.must_exist(words[0])
    return words[0], words[1:]
