"""The conformance matrix as Markdown, for documentation: tables, in English."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from traindx.norm.conformance.matrix import Matrix, Shown, TargetResult
from traindx.report.conformance import cell, kinds, numbers
from traindx.report.untrusted import plain

_FEW = 4
"""Numbers of an output in a row."""


def page(matrix: Matrix) -> str:
    """The table of all targets, then the differences of each."""
    return "\n".join(_lines(matrix)) + "\n"


def _lines(matrix: Matrix) -> Iterator[str]:
    yield "# Normalization layers: how they differ"
    yield ""
    yield "E errors, W warnings, N notes; - has no such layer."
    yield ""
    names = [target.name for target in matrix.targets]
    rows = ([kind, *(cell(target, kind) for target in matrix.targets)] for kind in kinds(matrix))
    yield from _table(["", *names], rows)
    for target in matrix.targets:
        yield ""
        yield from _target(target)
    if matrix.missing:
        yield from ("", "## Not installed", "")
        yield from (f"- {_cell(name)}: {_cell(why)}" for name, why in matrix.missing.items())


def _target(target: TargetResult) -> Iterator[str]:
    yield f"## {_cell(target.name)}"
    yield ""
    yield f"{_cell(target.version)}"
    yield ""
    heads = ["", "layer", "where", "what", "got", "expected"]
    yield from _table(heads, (_row(one) for one in target.differences))


def _row(one: Shown) -> list[str]:
    got, expected = (numbers(values[:_FEW]) for values in (one.got, one.expected))
    # A difference of types or options shows in no number of a few digits.
    shown = (got, expected) if got != expected else ("", "")
    return [one.severity, one.layer, one.part, one.text, *shown]


def _table(heads: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(_cell, heads))} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    """Text that ends no cell and is no markup."""
    safe = plain(str(text))
    for character in "\\|<>*_`[]":
        safe = safe.replace(character, f"\\{character}")
    return safe
