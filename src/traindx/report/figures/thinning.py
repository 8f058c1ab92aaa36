"""Showing fewer points than were measured, without hiding the extreme ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
Point = tuple[int, float]

ABSENT = -float(np.finfo(np.float32).max)
"""What stands in a table where nothing was measured; NaN is a measurement."""


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


def stretches(
    steps: NDArray[np.int64], values: NDArray[np.float64], most: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """At most about `most` columns of a table (sites x steps) that share their steps.

    Each stretch of steps keeps two columns, at its first and its last step. They hold, of each
    row, its least and its greatest value in the order they came; the first value that is not
    finite takes the place of one of them.
    """
    count = len(steps)
    if count <= most:
        return steps, values
    size = math.ceil(2 * count / most)
    starts = np.arange(0, count, size)
    ends = np.minimum(starts + size, count) - 1
    padding = -count % size
    padded = np.pad(values, ((0, 0), (0, padding)), constant_values=ABSENT)
    blocks = np.reshape(padded, (len(values), len(starts), size))
    first, second = _two_of_each(blocks)
    picks = np.stack([np.minimum(first, second), np.maximum(first, second)], axis=-1)
    kept = np.reshape(np.take_along_axis(blocks, picks, axis=2), (len(values), -1))
    columns = np.ravel(np.stack([steps[starts], steps[ends]], axis=-1))
    if starts[-1] == ends[-1]:  # a last stretch of one step has no second column
        return columns[:-1], kept[:, :-1]
    return columns, kept


def _two_of_each(
    blocks: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each block (sites x stretches x steps) has its least and its greatest value."""
    finite = np.isfinite(blocks) & (blocks != ABSENT)
    lowest: NDArray[np.int64] = np.argmin(np.where(finite, blocks, np.inf), axis=2)
    greatest: NDArray[np.int64] = np.argmax(np.where(finite, blocks, -np.inf), axis=2)
    broken = ~np.isfinite(blocks)
    first: NDArray[np.int64] = np.argmax(broken, axis=2)
    least: NDArray[np.int64] = np.where(np.any(broken, axis=2), first, lowest)
    # A stretch without any finite value shows the first that is broken, if there is one, twice.
    return least, np.where(np.any(finite, axis=2), greatest, least)
