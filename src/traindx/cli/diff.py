"""`traindx diff`: what changed between two runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from traindx.cli import options, outcome
from traindx.cli.language import Lang, spoken
from traindx.findings import Severity


def diff(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="A run file.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="Another one.")],
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write it as JSON; `-` prints it.")
    ] = None,
    fail_on: Annotated[
        Severity | None,
        typer.Option(help="Exit with 1 if a new finding is this severe or more."),
    ] = None,
    config: options.ConfigFile = None,
    lang: Lang = None,
) -> None:
    """Show what changed from one run to another: findings, losses, measurements, settings."""
    from traindx.report import compared
    from traindx.report.comparison import compare
    from traindx.report.text import wants_color

    settings = options.load(config)
    old, new = outcome.open_run(before, settings), outcome.open_run(after, settings)
    comparison = compare(old, new)
    if json is not None:
        outcome.write(compared.document(old, new, comparison), json)
    if json != "-":
        color = wants_color(sys.stdout, os.environ)
        text = compared.render(
            old, new, comparison, width=outcome.width(), color=color, language=spoken()
        )
        outcome.echo(text)
    if fail_on and any(f.severity.rank <= fail_on.rank for f in comparison.new):
        raise typer.Exit(1)
