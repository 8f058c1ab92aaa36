"""`traindx norm`: the exact normalization core on the command line."""

from __future__ import annotations

import typer

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
