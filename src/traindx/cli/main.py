"""The command line: a module a command, one exit code for everything a user can repair."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
import typer.main

from traindx import __version__
from traindx.cli import (
    check,
    demo,
    diff,
    language,
    norm,
    outcome,
    preflight,
    report,
    rules,
    run,
    show,
    signal,
)
from traindx.cli.language import Lang
from traindx.errors import TraindxError
from traindx.messages import say
from traindx.script import Interrupted

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Say why a PyTorch training run does not learn.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"traindx {__version__}")
        raise typer.Exit


@app.callback()
def traindx(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    lang: Lang = None,
) -> None:
    """Say why a PyTorch training run does not learn."""


app.command(context_settings={"allow_interspersed_args": False})(run.run)
app.command(context_settings={"allow_interspersed_args": False})(preflight.preflight)
app.command()(check.check)
app.command()(report.report)
app.command()(show.show)
app.command()(diff.diff)
app.command()(rules.rules)
app.command()(rules.rule)
app.command()(signal.signal)
app.command()(demo.demo)
app.add_typer(norm.app, name="norm")


def main() -> None:
    """Entry point of the `traindx` command."""
    language.forget()
    command = typer.main.get_command(app)  # calling `app` itself would replace `sys.excepthook`
    try:
        command()
    except TraindxError as error:
        outcome.tell(error.message, sys.stderr)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        outcome.tell(outcome.NO_TORCH, sys.stderr)
        sys.exit(TraindxError.exit_code)
    except OSError as error:  # such as a full standard output
        reason = error.strerror or str(error)
        outcome.tell(say("Cannot go on: {reason}.", reason=reason), sys.stderr)
        sys.exit(TraindxError.exit_code)
    except Interrupted:
        # Only of an uncaught KeyboardInterrupt does the interpreter, after all clean-up, die as a
        # shell expects it of Ctrl-C. Its traceback has been printed.
        sys.excepthook = _silent
        raise KeyboardInterrupt from None


def _silent(*_error: object) -> None:
    """An excepthook that says nothing."""
