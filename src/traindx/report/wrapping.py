"""Lines of a width as a terminal counts it: a Chinese character takes two cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size

# No line begins with these: they close what stands before them.
_CLOSING = "\uff0c\u3002\u3001\uff1b\uff1a\uff01\uff1f\uff09\u300d\u300f\u300b\u3011\u3009\u2026"
_OPENING = "\uff08\u300c\u300e\u300a\u3010\u3008"
_WIDE = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
# A wide character with what closes it, spaces, or a word of others; an opening bracket stays with
# what follows.
_UNIT = re.compile(rf"\s+|[{_OPENING}]*(?:[{_WIDE}]|[^\s{_WIDE}]+)[{_CLOSING}]*|.")


def width_of(text: str) -> int:
    """The cells that a text takes."""
    return cell_len(text)


def padded(text: str, width: int) -> str:
    """The text with spaces behind it, up to a width."""
    return text + " " * (width - cell_len(text))


def clipped(text: str, width: int) -> str:
    """The text, its end left out where it is wider."""
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1).rstrip()}…"


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]], least: int = 0) -> list[str]:
    """Heads and rows as lines of columns that end below each other, two spaces or more between.

    Args:
        heads: One for each column.
        rows: A cell for each column.
        least: Cells that a column takes at least.
    """
    lines = [heads, *rows]
    widths = [max(least, *(width_of(line[i]) + 2 for line in lines)) for i in range(len(heads))]
    return [
        "".join(" " * (w - width_of(cell)) + cell for cell, w in zip(line, widths, strict=True))
        for line in lines
    ]


def wrapped(text: str, width: int) -> Iterator[str]:
    """The lines of a text; what is longer than a line by itself, such as a path, is not cut."""
    line = ""
    for unit in _UNIT.findall(text):
        if line.strip() and cell_len(line + unit.rstrip()) > width:
            yield line.rstrip()
            line = unit.lstrip()
        else:
            line += unit
    yield line.rstrip()
