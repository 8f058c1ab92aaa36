"""Showing fewer points than were measured, without hiding the extreme ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
Point = tuple[int, float]


def spread(items: Sequence[T], most: int) -> list[T]:
    """At most `most` items, evenly spaced, the first and the last among them."""
    if len(items) <= most:
        return list(items)
    if most < 2:
        return [items[-1]][:most]
    return [items[round(i * (len(items) - 1) / (most - 1))] for i in range(most)]


def extremes(points: Sequence[Point], most: int) -> list[Point]:
    """About `most` points: of each stretch the least, the greatest and the first non-finite."""
    if len(points) <= most:
        return list(points)
    size = math.ceil(2 * len(points) / most)
    stretches = (points[i : i + size] for i in range(0, len(points), size))
    return [point for stretch in stretches for point in sorted(set(_telling(stretch)))]


def _telling(stretch: Sequence[Point]) -> Iterator[Point]:
    finite = [point for point in stretch if math.isfinite(point[1])]
    if finite:
        yield min(finite, key=lambda point: point[1])
        yield max(finite, key=lambda point: point[1])
    yield from [point for point in stretch if not math.isfinite(point[1])][:1]
