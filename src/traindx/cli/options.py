"""The options that several commands take, and the one place where they meet the file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traindx import config as settings
from traindx.cli import language
from traindx.findings import Severity

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
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write the verdict as JSON; `-` prints it."),
]
FailOn = Annotated[
    Severity | None,
    typer.Option(help="Exit with 1 if a finding is this severe or more; error by default."),
]


def load(file: Path | None, **options: object) -> settings.Config:
    """The settings of a file, and the options of the command line over them.

    Raises:
        UsageError: Something in them is wrong.
    """
    loaded = settings.load(file).over(**options)
    language.prefer(loaded.lang)
    return loaded
