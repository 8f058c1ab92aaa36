"""`traindx signal`: how a signal and a gradient travel through a model, by theory and measured."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from traindx.cli import outcome
from traindx.cli.language import Lang, spoken


def signal(
    target: Annotated[
        str,
        typer.Argument(help="`package.module:name` or `file.py:name`: a model, or what makes one."),
    ],
    shape: Annotated[
        str | None,
        typer.Option(metavar="SHAPE", help="Of a standard normal batch, as `64x1x28x28`."),
    ] = None,
    variance: Annotated[float, typer.Option(help="Mean square that the right gains keep.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the batch and of the direction at the output.")] = 0,
    eval: Annotated[
        bool, typer.Option("--eval", help="In evaluation; else in the mode the model is in.")
    ] = False,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write it as JSON; `-` prints it.")
    ] = None,
    lang: Lang = None,
) -> None:
    """Show what theory says of each layer beside what is measured, and the gain that is right."""
    from traindx.preflight.propagation import passages
    from traindx.preflight.target import batch, load, mode, size
    from traindx.report.propagation import document, render
    from traindx.report.text import wants_color
    from traindx.signal.propagation import propagation

    with outcome.aside():
        named = load(target)
        inputs = batch(named, target, shape=shape, seed=seed)
        if eval:
            named.model.eval()
        measured = passages(named.model, inputs, seed=seed)
    shown = propagation(
        target,
        measured,
        samples=size(inputs),
        training=mode(named.model),
        variance=variance,
    )
    if json is not None:
        outcome.write(document(shown), json)
    if json != "-":
        color = wants_color(sys.stdout, os.environ)
        text = render(shown, width=outcome.width(), color=color, language=spoken())
        outcome.echo(text)
