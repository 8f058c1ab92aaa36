"""A number that stands for none: the same one again and again, far from all others."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from traindx.facts import Json

_FAR = 5.0
"""Ranges of the others at which it lies from them."""
_OTHERS = 8
"""Different numbers among the others, at least: else those may be marks, too."""
_COLUMNS = 512
"""Columns that are looked at, evenly spaced, at most."""


_TARGETS = 16
"""Columns of a target that may be quantities of their own, at most."""


class Marks(NamedTuple):
    """Elements of a batch that stand for none.

    Attributes:
        value: Of the column that has the most of them.
        elements: How many they are, in all columns.
        columns: Those that have some.
    """

    value: float
    elements: int
    columns: int


def marks_of(table: Tensor) -> Marks | None:
    """Marks in the columns of a table of shape (samples, columns); None if there are none.

    In some column it must stand more than once, since one number far off may be one.
    """
    columns = table.detach().double().unbind(1)
    found = [
        one for column in columns[:: -(-len(columns) // _COLUMNS) or 1] if (one := _mark(column))
    ]
    if not found or max(count for _, count in found) < 2:
        return None
    most = max(found, key=lambda one: one[1])
    return Marks(most[0], sum(count for _, count in found), len(found))


def units_of(target: Tensor) -> dict[str, Json]:
    """Marks among the targets of a regression, and how unlike the sizes of several of them are."""
    values = target.detach().double()
    if not target.is_floating_point() or not target.dim() or len(target) < _OTHERS:
        return {}
    table = values.reshape(len(target), -1)
    if not 0 < table.shape[1] <= _TARGETS:
        return {}
    marks = marks_of(table)
    told: dict[str, Json] = {} if marks is None else {"mark": marks.value, "marks": marks.elements}
    spread = table.std(0, correction=0)
    if target.dim() == 2 and target.shape[1] > 1 and float(spread.min()) > 0:
        told["unit_ratio"] = float(spread.max() / spread.min())
    return told


def _mark(column: Tensor) -> tuple[float, int] | None:
    """The number at one end of a column that is far from the others, and how often it is there."""
    values, counts = cast(
        "tuple[Tensor, Tensor]", cast(Any, torch).unique(column, return_counts=True)
    )
    if len(values) <= _OTHERS or not bool(values.isfinite().all()):
        return None
    ends = (
        (values[0], counts[0], values[1] - values[0], values[-1] - values[1]),
        (values[-1], counts[-1], values[-1] - values[-2], values[-2] - values[0]),
    )
    for value, count, gap, reach in ends:
        if float(gap) > _FAR * float(reach) and int(count) < len(column) / 2:
            return float(value), int(count)
    return None
