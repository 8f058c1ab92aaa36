"""`traindx norm convert`: normalization layers from one framework's files to another's."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traindx.cli import outcome
from traindx.cli.language import Lang, spoken
from traindx.norm.convert.purpose import Purpose

if TYPE_CHECKING:
    from traindx.norm.convert.frameworks.framework import Found, Framework, Hints


def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A file of weights or of a model, or `file.py:name` for a model of torch.",
        ),
    ],
    to: Annotated[str, typer.Option(help="torch, linen, nnx, keras or onnx.")],
    from_: Annotated[
        str | None, typer.Option("--from", help="Whose names the file has, if they do not tell.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="A new file.")] = (
        None
    ),
    layer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN=PRESET,…",
            help="What layers are, as `ln*=torch.LayerNorm,eps=1e-6`.",
        ),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="New names, as `encoder.*=enc_*`."),
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Layers that stay behind.")
    ] = None,
    purpose: Annotated[
        Purpose, typer.Option("--for", help="What must come through unchanged.")
    ] = Purpose.EVALUATION,
    axis: Annotated[
        int | None, typer.Option(help="The channels' axis in the target, if not its usual one.")
    ] = None,
    momentum: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Weight of a new batch, where the source has none."),
    ] = None,
    elements: Annotated[
        int | None, typer.Option(min=2, help="Elements of a channel in a training batch.")
    ] = None,
    batches: Annotated[
        int | None, typer.Option(min=0, help="Batches seen, where the source does not tell.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Weights to put into the model first.")
    ] = None,
    frameworks: Annotated[
        bool, typer.Option(help="Let the frameworks that are installed compute the proof, too.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be done.")
    ] = False,
    json: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write it as JSON; `-` prints it.")
    ] = None,
    lang: Lang = None,
) -> None:
    """Move normalization state between torch, Flax, Keras and ONNX, or refuse, with a proof."""
    from traindx.norm.convert import mapping
    from traindx.norm.convert.carrying import Wish
    from traindx.norm.convert.converting import Order, convert, refuse_existing
    from traindx.norm.convert.frameworks.catalog import framework
    from traindx.norm.convert.frameworks.framework import by_pattern
    from traindx.report.conversion import document, render
    from traindx.report.text import wants_color

    order = Order(
        framework(to),
        Wish(purpose, axis, momentum, elements, batches),
        [mapping.rename(text) for text in rename or []],
        leave_out or [],
        out,
        frameworks,
        dry_run,
    )
    if out is not None and not dry_run:
        refuse_existing(out)
    hints = by_pattern([mapping.hint(text) for text in layer or []])
    with outcome.aside():
        made = convert(*_found(source, from_, hints, checkpoint), order)
    if json is not None:
        outcome.write(document(made, source), json)
    if json != "-":
        color = wants_color(sys.stdout, os.environ)
        shown = render(made, source, width=outcome.width(), color=color, language=spoken())
        outcome.echo(shown)
    if made.refused:
        raise typer.Exit(1)


def _found(
    source: str, from_: str | None, hints: Hints, checkpoint: Path | None
) -> tuple[Framework, Found]:
    from traindx.norm.convert.frameworks import catalog
    from traindx.norm.convert.frameworks.torch import TORCH, of_model

    if ":" not in Path(source).name or Path(source).exists():
        if from_ is not None:
            catalog.framework(from_)
        return catalog.read(Path(source), from_, hints)
    from traindx.norm.modules.checkpoints import load_into
    from traindx.preflight.target import load

    model = load(source).model
    if checkpoint is not None:
        load_into(model, checkpoint)
    return TORCH, TORCH.reads(of_model(model, source), hints)
