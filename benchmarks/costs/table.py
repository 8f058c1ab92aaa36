"""Rows of text, or a table for the documentation."""

from __future__ import annotations

from collections.abc import Sequence


def plain(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of even width, the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [head, *rows]
    ]
    return "\n".join(lines)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same in Markdown."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None, form: str = ".3f") -> str:
    """A number, or a dash for none."""
    return "-" if value is None or value != value else format(value, form)
