"""The options that several commands take, and the one place where they meet the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from traindx import config as settings
from traindx.cli import language
from traindx.findings import Severity
from traindx.messages import Message, say

REFUSED = 2
"""The exit code of a script that cannot use its arguments, as `argparse` and others end."""

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="In place of the nearest pyproject.toml."),
]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="RULES", help="Apply only these, as `N001` or `N,G`."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="RULES", help="Pass over these, as `N003@backbone.*`."),
]
Contexts = Annotated[
    list[str] | None,
    typer.Option("--context", metavar="NAMES", help="Declare what the training is, as `gan`."),
]
Baseline = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="Pass over the findings of this file."),
]
Module = Annotated[
    bool, typer.Option("-m", help="The first word names a module, as for `python -m`.")
]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write the verdict as JSON; `-` prints it."),
]
FailOn = Annotated[
    Severity | None,
    typer.Option(help="Exit with 1 if a finding is this severe or more; error by default."),
]
Runs = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Where run files go; traindx-runs by default."),
]
Command = Annotated[
    bool, typer.Option(help="Note the command line, secrets redacted, in the run file.")
]
FirstWeights = Annotated[
    bool | None,
    typer.Option(
        "--first-weights/--no-first-weights",
        help="Keep the first layer's weights in the run file, as a picture; kept by default.",
    ),
]


def misplaced(context: typer.Context, args: Sequence[str]) -> Message:
    """What to say where a script refuses its arguments and one is an option of the command.

    Empty if none is: then they are the script's own affair.
    """
    flags = {
        flag for param in context.command.params for flag in (*param.opts, *param.secondary_opts)
    }
    ours = [name for arg in args if (name := arg.partition("=")[0]) in flags and name[:1] == "-"]
    if not ours:
        return Message("")
    return say(
        "`{option}` stands behind the script, so it is the script's, which refused its arguments. "
        "If it is for traindx, put it before: `{command} {option} … SCRIPT`.",
        option=ours[0],
        command=context.command_path,
    )


def load(file: Path | None, **options: object) -> settings.Config:
    """The settings of a file, and the options of the command line over them.

    Raises:
        UsageError: Something in them is wrong.
    """
    loaded = settings.load(file).over(**options)
    language.prefer(loaded.lang)
    return loaded
