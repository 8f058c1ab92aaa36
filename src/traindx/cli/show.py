"""`traindx show`: what is known of one layer or parameter."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from traindx.cli import options, outcome
from traindx.cli.language import Lang, spoken


def show(
    run: Annotated[
        str | None, typer.Argument(help="A run file; by default the last of ./traindx-runs.")
    ] = None,
    site: Annotated[
        str | None,
        typer.Argument(help="A layer or parameter, or several as `features.*`; lists all without."),
    ] = None,
    config: options.ConfigFile = None,
    lang: Lang = None,
) -> None:
    """Show a layer or parameter of a saved run: its facts, what was measured, what was found."""
    from traindx.report import shown
    from traindx.report.places import matching
    from traindx.report.sparkline import drawable
    from traindx.report.text import wants_color

    settings = options.load(config)
    if run is not None and site is None and not _names_file(run):
        run, site = None, run
    judged = outcome.open_run(None if run is None else Path(run), settings)
    width, color = outcome.width(), wants_color(sys.stdout, os.environ)
    if site is None:
        text = shown.render_layers(judged, width=width, color=color, language=spoken())
    else:
        text = shown.render(
            judged,
            matching(judged, site),
            width=width,
            color=color,
            language=spoken(),
            levels=drawable(getattr(sys.stdout, "encoding", None)),
        )
    outcome.echo(text)


def _names_file(word: str) -> bool:
    """Whether a single word is a run; one that is none is a site of the last run."""
    return os.sep in word or word.endswith(".traindx") or Path(word).exists()
