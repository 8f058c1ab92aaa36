"""`traindx norm recalibrate` and `traindx norm fold`: repairs of a trained model, with proof."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from traindx.cli import outcome
from traindx.cli.language import Lang, spoken
from traindx.errors import UsageError
from traindx.messages import say

if TYPE_CHECKING:
    from torch import nn

    from traindx.preflight.target import Target

Checkpoint = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Weights to put into the model first.")
]
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="A new file.")]
Json = Annotated[str | None, typer.Option(metavar="FILE", help="Write it as JSON; `-` prints it.")]


def recalibrate(
    target: Annotated[
        str, typer.Argument(help="`file.py:name`: returns model, loader, and maybe an evaluation.")
    ],
    checkpoint: Checkpoint = None,
    out: Out = None,
    batches: Annotated[int | None, typer.Option(min=1, help="Batches to take at most.")] = None,
    json: Json = None,
    lang: Lang = None,
) -> None:
    """Estimate BatchNorm's running statistics anew over a loader, and save the weights."""
    from traindx.norm.modules.recalibrate import recalibrate
    from traindx.report import repairs

    _refuse_existing(out)
    with outcome.aside():
        named = _loaded(target, checkpoint)
        loader, evaluate = _loader(named, target)
        before = evaluate and evaluate(named.model)
        result = recalibrate(named.model, loader, limit=batches)
        after = evaluate and evaluate(named.model)
    shown = repairs.Recalibrated(
        [(layer.fqn, layer.elements, layer.gap) for layer in result.layers],
        result.batches,
        result.skipped,
        result.uncalled,
        None if before is None or after is None else (before, after),
        _saved(named.model, out),
    )
    _tell(repairs.recalibrated, repairs.recalibration_document, shown, json)


def fold(
    target: Annotated[str, typer.Argument(help="`file.py:name`: returns model and batch.")],
    checkpoint: Checkpoint = None,
    out: Out = None,
    shape: Annotated[
        str | None,
        typer.Option(metavar="SHAPE", help="Of a standard normal batch, as `64x1x28x28`."),
    ] = None,
    json: Json = None,
    lang: Lang = None,
) -> None:
    """Fold BatchNorm into the layers before it for evaluation, and prove that nothing changed."""
    from traindx.norm.modules.fold import fold
    from traindx.preflight.target import batch
    from traindx.report import repairs

    _refuse_existing(out)
    with outcome.aside():
        named = _loaded(target, checkpoint)
        folding = fold(named.model, *batch(named, target, shape=shape, seed=0))
    shown = repairs.FoldedModel(
        [(pair.layer, pair.norm) for pair in folding.folded],
        [(refused.norm, refused.reason) for refused in folding.refused],
        folding.difference,
        folding.allowed,
        _saved(folding.model, out),
    )
    _tell(repairs.folded, repairs.folding_document, shown, json)


def _loaded(target: str, checkpoint: Path | None) -> Target:
    from traindx.norm.modules.checkpoints import load_into
    from traindx.preflight.target import load

    named = load(target)
    if checkpoint is not None:
        load_into(named.model, checkpoint)
    return named


def _loader(
    named: Target, target: str
) -> tuple[Iterable[Any], Callable[[nn.Module], float] | None]:
    """What a target returns after its model: a loader, and maybe a function that evaluates."""
    from traindx.trial import attempted

    loader, evaluate = (*named.given, None, None)[:2]
    if not isinstance(loader, Iterable) or not (evaluate is None or callable(evaluate)):
        raise UsageError(
            say(
                "`{target}` needs to return a model and a loader, and may return a function of "
                "the model that evaluates it: `return model, loader, accuracy`.",
                target=target,
            )
        )
    batches = cast("Iterable[Any]", loader)
    if evaluate is None:
        return batches, None

    def score(model: nn.Module) -> float:
        found = attempted(cast(Any, evaluate), model)
        try:
            return float(found)
        except (TypeError, ValueError, RuntimeError) as error:
            raise UsageError(
                say("The evaluation gives a `{kind}` and no number.", kind=type(found).__name__)
            ) from error

    return batches, score


def _refuse_existing(out: Path | None) -> None:
    """Before the work, which may be long."""
    from traindx.norm.modules.checkpoints import refuse_existing

    if out is not None:
        refuse_existing(out)


def _saved(model: nn.Module, out: Path | None) -> str:
    from traindx.norm.modules.checkpoints import save

    if out is None:
        return ""
    save(model, out)
    return str(out)


def _tell(
    render: Callable[..., str], document: Callable[[Any], str], shown: object, json: str | None
) -> None:
    from traindx.report.text import wants_color

    if json is not None:
        outcome.write(document(shown), json)
    if json != "-":
        color = wants_color(sys.stdout, os.environ)
        outcome.echo(render(shown, width=outcome.width(), color=color, language=spoken()))
