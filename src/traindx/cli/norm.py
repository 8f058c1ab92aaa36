"""`traindx norm`: the exact normalization core on the command line."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from traindx.cli import (
    norm_audit,
    norm_conformance,
    norm_convert,
    norm_explain,
    norm_repairs,
    outcome,
)
from traindx.cli.language import Lang, spoken

app = typer.Typer(no_args_is_help=True)


@app.callback()
def norm() -> None:
    """Exact normalization: check the arithmetic this tool judges with."""


@app.command()
def verify() -> None:
    """Recompute the worked example by NumPy, torch and fractions; exit 1 if a line deviates."""
    from traindx.norm.verify import LIMIT, verify, worst

    results = verify()
    for result in results:
        typer.echo(result.text)
    typer.echo(worst(results))
    faulty = [result for result in results if result.faults]
    for result in faulty:
        typer.echo(f"{result.key} {' and '.join(result.faults)}; allowed: {LIMIT}", err=True)
    if faulty:
        raise typer.Exit(1)


class Format(str, Enum):
    """What a trace is written as."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


_ARRAY = "`1,2;3,0`, JSON, a .csv or a .npy file"


@app.command()
def trace(
    x: Annotated[str, typer.Argument(metavar="X", help=f"The input: {_ARRAY}.")],
    norm: Annotated[
        str, typer.Option("--norm", "-n", help="The layer, as `torch.LayerNorm`.")
    ] = "torch.BatchNorm1d",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="NAME=VALUE", help="Of the layer, as `eps=1e-3`."),
    ] = None,
    weight: Annotated[str | None, typer.Option(metavar="W", help="Its weight.")] = None,
    bias: Annotated[str | None, typer.Option(metavar="B", help="Its bias.")] = None,
    running_mean: Annotated[str | None, typer.Option(metavar="M", help="Before the batch.")] = None,
    running_var: Annotated[str | None, typer.Option(metavar="V", help="Before the batch.")] = None,
    batches: Annotated[int, typer.Option(min=0, help="Batches tracked before this one.")] = 0,
    u: Annotated[str | None, typer.Option(metavar="U", help="Of spectral normalization.")] = None,
    v: Annotated[str | None, typer.Option(metavar="V", help="Of spectral normalization.")] = None,
    mask: Annotated[str | None, typer.Option(metavar="MASK", help="1 where it counts.")] = None,
    grad: Annotated[
        str | None, typer.Option(metavar="DY", help="Gradient at the output: adds the gradients.")
    ] = None,
    digits: Annotated[int, typer.Option(min=1, max=17, help="Significant digits shown.")] = 9,
    format: Annotated[Format, typer.Option(help="What to write.")] = Format.TEXT,
    lang: Lang = None,
) -> None:
    """Show every intermediate of a layer on your own numbers: name, formula, value."""
    from traindx.norm import numbers
    from traindx.norm.trace import Given, trace
    from traindx.report.trace import FORMATS

    running = numbers.running(running_mean, running_var, batches, u=u, v=v)
    layer = numbers.spec(norm, option or [])
    given = Given(
        numbers.array(x),
        numbers.optional(weight),
        numbers.optional(bias),
        running,
        numbers.optional(mask),
        numbers.optional(grad),
    )
    title = f"{norm} {' '.join(option or [])}".strip()
    text = FORMATS[format.value](title, trace(layer, given), digits=digits, language=spoken())
    outcome.echo(text)


@app.command()
def presets(
    name: Annotated[str | None, typer.Argument(help="One of them; lists all without.")] = None,
    lang: Lang = None,
) -> None:
    """List the layers of the frameworks that are known, or show one with its options."""
    from traindx.norm.presets import PRESETS, find_preset
    from traindx.report.presets import render, render_all

    if name is None:
        outcome.echo(render_all(list(PRESETS.values()), language=spoken()))
    else:
        outcome.echo(render(find_preset(name), language=spoken()))


app.command()(norm_audit.audit)
app.command()(norm_repairs.recalibrate)
app.command()(norm_repairs.fold)
app.command()(norm_explain.explain)
app.command()(norm_convert.convert)
app.command()(norm_conformance.conformance)
