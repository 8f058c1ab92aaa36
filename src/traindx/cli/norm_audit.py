"""`traindx norm audit`: what is wrong with the normalization of a checkpoint or a model."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traindx.cli import outcome
from traindx.cli.language import Lang, spoken
from traindx.findings import Severity

if TYPE_CHECKING:
    from traindx.norm.audit.facts import Subject


def audit(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT", help="A checkpoint, or `file.py:name`: returns model, batch or loader."
        ),
    ],
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Weights to put into the model first.")
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(metavar="SHAPE", help="Of a standard normal batch, as `64x1x28x28`."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps it was trained for, to compare counters with.")
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write it as JSON; `-` prints it.")
    ] = None,
    fail_on: Annotated[
        Severity, typer.Option(help="Exit with 1 if something is this severe or more.")
    ] = Severity.ERROR,
    lang: Lang = None,
) -> None:
    """Find what is wrong with normalization: statistics, modes, precision, gaps, their shares."""
    from traindx.norm.audit.check import audit as audited
    from traindx.report.audit import document, render
    from traindx.report.text import wants_color

    found = audited(_subject(what, checkpoint, shape, steps))
    if json is not None:
        outcome.write(document(found), json)
    if json != "-":
        color = wants_color(sys.stdout, os.environ)
        outcome.echo(render(found, width=outcome.width(), color=color, language=spoken()))
    if any(one.severity.rank <= fail_on.rank for one in found.found):
        raise typer.Exit(1)


def _subject(what: str, checkpoint: Path | None, shape: str | None, steps: int | None) -> Subject:
    from traindx.norm.modules.audited import of_checkpoint, of_model

    if ":" not in Path(what).name or Path(what).exists():
        return of_checkpoint(Path(what), steps=steps)
    from traindx.norm.modules.checkpoints import load_into
    from traindx.preflight.target import batch, load

    named = load(what)
    if checkpoint is not None:
        load_into(named.model, checkpoint)
    inputs = batch(named, what, shape=shape, seed=0) if shape or named.given else ()
    return of_model(
        named.model,
        inputs,
        random=shape is not None,
        name=what,
        weights=str(checkpoint or ""),
        steps=steps,
    )
