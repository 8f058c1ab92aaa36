"""`traindx check`: judge a saved run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from traindx.cli import options, outcome
from traindx.cli.language import Lang
from traindx.findings import Severity


def check(
    run: Annotated[
        Path | None, typer.Argument(help="A run file; by default the last of ./traindx-runs.")
    ] = None,
    json: options.Json = None,
    fail_on: options.FailOn = None,
    select: options.Select = None,
    ignore: options.Ignore = None,
    context: options.Contexts = None,
    baseline: options.Baseline = None,
    write_baseline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the findings as a baseline; `-` prints it."),
    ] = None,
    config: options.ConfigFile = None,
    lang: Lang = None,
) -> None:
    """Judge a saved run; exit 0 if clean, 1 on findings, 2 on unusable input."""
    settings = options.load(
        config,
        select=select,
        ignore=ignore,
        contexts=context,
        baseline=baseline,
        fail_on=fail_on,
    )
    judged = outcome.open_run(run, settings)
    if write_baseline is not None:
        outcome.write_baseline(judged, write_baseline)
    if json is not None:
        outcome.write_json(judged, json)
    if "-" not in (json, write_baseline):
        outcome.show(judged, sys.stdout, asked=True)
    raise typer.Exit(int(outcome.failed(judged, settings.fail_on or Severity.ERROR)))
