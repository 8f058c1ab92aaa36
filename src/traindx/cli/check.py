"""`traindx check`: judge a saved run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from traindx.cli import outcome
from traindx.findings import Severity


def check(
    run: Annotated[
        Path | None, typer.Argument(help="A run file; by default the last of ./traindx-runs.")
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the verdict as JSON; `-` prints it.")
    ] = None,
    fail_on: Annotated[
        Severity, typer.Option(help="Exit with 1 if a finding is this severe or more.")
    ] = Severity.ERROR,
) -> None:
    """Judge a saved run; exit 0 if clean, 1 on findings, 2 on unusable input."""
    judged = outcome.open_run(run)
    if json is not None:
        outcome.write_json(judged, json)
    if json != "-":
        outcome.show(judged, sys.stdout)
    raise typer.Exit(int(outcome.failed(judged, fail_on)))
