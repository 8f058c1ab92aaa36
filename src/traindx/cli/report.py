"""`traindx report`: a saved run as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traindx.cli import options, outcome
from traindx.cli.language import Lang, spoken


def report(
    run: Annotated[
        Path | None, typer.Argument(help="A run file; by default the last of ./traindx-runs.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="By default the run's name + .html."),
    ] = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    context: options.Contexts = None,
    baseline: options.Baseline = None,
    config: options.ConfigFile = None,
    lang: Lang = None,
) -> None:
    """Write a self-contained HTML page of a saved run."""
    from traindx.report.html.page import render

    settings = options.load(
        config, select=select, ignore=ignore, contexts=context, baseline=baseline
    )
    judged = outcome.open_run(run, settings)
    assert judged.path is not None
    target = output or str(judged.path.with_suffix(".html"))
    outcome.write(render(judged, spoken()), target)
    if target != "-":
        outcome.echo(target)
