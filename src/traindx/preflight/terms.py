"""The terms that a loss is the sum of, each with its weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from traindx.preflight.case import Case, Compared, compared_of
from traindx.preflight.tape import Entry, Tape, leading_to, losses_among

_SIGNS = {
    **dict.fromkeys(("add", "__add__", "__radd__"), (1.0, 1.0)),
    **dict.fromkeys(("sub", "__sub__", "subtract"), (1.0, -1.0)),
    **dict.fromkeys(("__rsub__", "rsub"), (-1.0, 1.0)),
}
"""With which sign a function adds its two arguments."""
_TIMES = {"mul", "__mul__", "__rmul__", "multiply"}
_OVER = {"div", "__truediv__", "true_divide"}


class Term(NamedTuple):
    """One of the summands of a loss.

    Attributes:
        value: It, with its graph, before it is weighted.
        weight: What it is multiplied by.
        compared: What it compares, if that is one call of a known loss function.
    """

    value: Tensor
    weight: float
    compared: Compared | None


def terms_of(case: Case, output: Any) -> tuple[Tensor, list[Term]]:
    """The loss of an output, and its terms in order; a single one if it is no sum."""
    tape = Tape()
    with tape:
        loss = case.loss_of(output)
    makers = {id(made): entry for entry in tape.entries for made in entry.made()}
    found = [
        Term(value, weight, _only_comparison(tape.entries, value))
        for value, weight in _summands(loss, 1.0, makers)
        if value.requires_grad
    ]
    return loss, found


def _summands(
    value: Tensor, weight: float, makers: dict[int, Entry]
) -> Iterator[tuple[Tensor, float]]:
    """What a number is the sum of, by what was done to make it."""
    entry = makers.get(id(value))
    parts = None if entry is None or entry.kwargs else _parts(entry)
    if parts is None:
        yield value, weight
        return
    for part, factor in parts:
        yield from _summands(part, weight * factor, makers)


def _parts(entry: Entry) -> list[tuple[Tensor, float]] | None:
    """The tensors that are added, and what each is multiplied by; None of anything else."""
    if len(entry.args) != 2 or entry.before is not None:
        return None
    one, other = entry.args
    signs = _SIGNS.get(entry.name)
    if signs is not None:
        pairs = zip((one, other), signs, strict=True)
        return [(part, sign) for part, sign in pairs if isinstance(part, Tensor)]
    if entry.name in (*_TIMES, *_OVER):
        moving, constant = (one, other) if _constant(one) is None else (other, one)
        factor = _constant(constant)
        swapped = moving is other
        if factor is None or not isinstance(moving, Tensor) or moving.numel() != 1:
            return None
        if entry.name in _OVER:
            return None if swapped or not factor else [(moving, 1 / factor)]
        return [(moving, factor)]
    return None


def _constant(value: Any) -> float | None:
    """A number that nothing trains; None of anything else."""
    if isinstance(value, Tensor):
        plain = value.numel() == 1 and not value.requires_grad
        return float(value) if plain else None  # copied from the device
    return float(value) if isinstance(value, int | float) else None


def _only_comparison(entries: Sequence[Entry], value: Tensor) -> Compared | None:
    found = losses_among(leading_to(entries, value))
    return compared_of(found[0]) if len(found) == 1 else None
