"""`traindx norm explain`: what differs between two layers, and what that does to a ported model."""

from __future__ import annotations

import os
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traindx.cli import outcome
from traindx.cli.language import Lang, spoken

if TYPE_CHECKING:
    from traindx.norm.explain.difference import Channels


class Format(str, Enum):
    """What an explanation is written as."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


def explain(
    a: Annotated[str, typer.Argument(metavar="A", help="A layer, as `torch.BatchNorm2d`.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Where a model is moved to.")],
    option_a: Annotated[
        list[str] | None,
        typer.Option("--option-a", "-a", metavar="NAME=VALUE", help="Of A, as `eps=1e-3`."),
    ] = None,
    option_b: Annotated[
        list[str] | None, typer.Option("--option-b", "-b", metavar="NAME=VALUE", help="Of B.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Count with the running variances of its layers."),
    ] = None,
    elements: Annotated[
        int | None, typer.Option(min=2, help="Elements of a channel in a training batch.")
    ] = None,
    format: Annotated[Format, typer.Option(help="What to write.")] = Format.TEXT,
    lang: Lang = None,
) -> None:
    """Say in words and numbers what two layers do otherwise, and what it does to a ported model."""
    from traindx.norm import numbers
    from traindx.norm.explain.difference import Given
    from traindx.norm.explain.explaining import explain
    from traindx.norm.presets import find_preset
    from traindx.report.explanation import FORMATS
    from traindx.report.text import wants_color

    names = (find_preset(a).name, find_preset(b).name)
    specs = (numbers.spec(a, option_a or []), numbers.spec(b, option_b or []))
    given = Given(names, _channels(checkpoint), elements)
    titles = (_title(names[0], option_a), _title(names[1], option_b))
    more = {} if format is not Format.TEXT else {"width": outcome.width()}
    if format is Format.TEXT:
        more["color"] = wants_color(sys.stdout, os.environ)
    found = explain(*specs, given)
    outcome.echo(FORMATS[format.value](titles, found, language=spoken(), **more))


def _title(name: str, options: list[str] | None) -> str:
    return " ".join([name, *(options or [])])


def _channels(checkpoint: Path | None) -> list[Channels]:
    """The layers of a checkpoint of any framework that keep statistics or a weight."""
    import numpy as np

    from traindx.norm.convert.frameworks.catalog import read
    from traindx.norm.convert.frameworks.framework import by_pattern
    from traindx.norm.convert.state import MEAN, VAR, WEIGHT, RefusedError, refuse_unsound
    from traindx.norm.explain.difference import Channels

    if checkpoint is None:
        return []
    found: list[Channels] = []
    for state in read(checkpoint, None, by_pattern(()))[1].states:
        try:
            refuse_unsound(state)
        except RefusedError:
            continue  # the audit tells of it
        mean, var, weight = (
            None if role not in state.arrays else np.ravel(state.arrays[role]).astype(np.float64)
            for role in (MEAN, VAR, WEIGHT)
        )
        found.append(Channels(state.name, mean, var, weight))
    return found
