"""A series in one short line of characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = "_.:-=+*#"
_DECADES = 2.0
"""Positive values that span more are drawn on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A drawn series.

    Attributes:
        text: A character for each stretch of it, as high as its value farthest from the median.
        is_log: Whether the scale is logarithmic.
    """

    text: str
    is_log: bool


def drawable(encoding: str | None) -> str:
    """The characters to draw with, from low to high, that an encoding has."""
    try:
        BLOCKS.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def sparkline(values: Sequence[float], width: int, levels: str = BLOCKS) -> Sparkline:
    """Draw values in at most `width` characters; `x` where one is not finite.

    Args:
        values: At least one.
        width: Characters to take.
        levels: What to draw with, from low to high.
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return Sparkline("x" * min(width, len(values)), is_log=False)
    is_log = min(finite) > 0 and math.log10(max(finite) / min(finite)) > _DECADES
    scale = math.log10 if is_log else float
    low, high, middle = scale(min(finite)), scale(max(finite)), median(finite)
    span = high / 2 - low / 2  # halves: the whole may be more than a float holds

    def drawn(stretch: Sequence[float]) -> str:
        if not all(map(math.isfinite, stretch)):
            return "x"
        value = max(stretch, key=lambda value: abs(value - middle))
        height = (scale(value) / 2 - low / 2) / span if span > 0 else 0.5
        return levels[min(int(height * len(levels)), len(levels) - 1)]

    return Sparkline("".join(map(drawn, _stretches(values, width))), is_log)


def _stretches(values: Sequence[float], width: int) -> list[Sequence[float]]:
    """The values in `width` portions of nearly equal length, one each where there are fewer."""
    parts = min(width, len(values))
    bounds = [len(values) * i // parts for i in range(parts + 1)]
    return [values[bounds[i] : bounds[i + 1]] for i in range(parts)]
