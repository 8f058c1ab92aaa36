"""Which entries of a long series are kept: the one rule that bounds memory in steps.

A series is thinned when it is full, so what it holds follows from its entries alone, in whatever
portions they come: a run that grows and the same run read from its file hold the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Indices = NDArray[np.intp]
    Steps = NDArray[np.int64]

HEAD = 128
"""Entries at the beginning that are never dropped: baselines and the first steps."""
TAIL = 512
"""Entries at the end that are not dropped yet: more than any rule's window."""


class Pins:
    """Steps that are kept in all series of a run: the moments that rules look back to."""

    def __init__(self) -> None:
        self._pinned: dict[str, tuple[int, ...]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._pinned

    def pin(self, name: str, steps: Iterable[int]) -> None:
        """Keep these steps, in the place of those that had this name."""
        self._pinned[name] = tuple(steps)

    @property
    def steps(self) -> list[int]:
        """All of them."""
        return [step for steps in self._pinned.values() for step in steps]


def kept(
    steps: Steps, spans: int, pins: Pins, extremes: Sequence[Floats], flags: Sequence[Flags]
) -> Indices:
    """The entries to keep of a full series.

    Those are the first `HEAD`, the last `TAIL`, those at pinned steps, and what is between in at
    most `spans` spans of 2^k steps each, aligned to multiples of 2^k. A span keeps its first and
    its last entry, of each of `extremes` the first least and the first greatest finite one, and of
    each of `flags` the first that is set. Wider spans hold whole narrower ones, so thinning again
    and again leaves what one thinning of everything would.

    Args:
        steps: The steps [n] of the entries, which do not fall; n > HEAD + TAIL.
        spans: How many spans there may be.
        pins: Steps that stay.
        extremes: Values [n] by which an entry is extreme.
        flags: Marks [n] whose first occurrence counts.
    """
    import numpy as np

    keep = np.ones(len(steps), np.bool_)
    middle = slice(HEAD, len(steps) - TAIL)
    inner, between = keep[middle], steps[middle]
    inner[:] = np.isin(between, pins.steps)
    span = between >> _shift(int(between[0]), int(between[-1]), spans)
    starts = np.flatnonzero(np.diff(span, prepend=span[0] - 1))
    lengths = np.diff(starts, append=len(span))
    place = np.repeat(np.arange(len(starts)), lengths)
    inner[starts] = True
    inner[starts + lengths - 1] = True
    for values in extremes:
        for signed in (values[middle], -values[middle]):
            comparable = np.where(np.isfinite(signed), signed, np.inf)
            least = np.minimum.reduceat(comparable, starts)
            inner[_first_of_each(place, comparable == least[place])] = True
    for marks in flags:
        inner[_first_of_each(place, marks[middle])] = True
    return np.flatnonzero(keep)


def _shift(first: int, last: int, spans: int) -> int:
    """The least k for which there are at most `spans` spans of 2^k steps."""
    shift = 0
    while (last >> shift) - (first >> shift) >= spans:
        shift += 1
    return shift


def _first_of_each(place: Indices, marks: Flags) -> Indices:
    """Where each span that has a mark has its first one."""
    import numpy as np

    marked = np.flatnonzero(marks)
    _, first = np.unique(place[marked], return_index=True)
    return marked[first]


class StepSet:
    """A set of steps added in order, as stretches of steps in a row."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []

    def add(self, step: int) -> None:
        """Add a step; steps do not fall."""
        if self._last and step - 1 <= self._last[-1]:
            self._last[-1] = max(step, self._last[-1])
        else:
            self._first.append(step)
            self._last.append(step)

    def __bool__(self) -> bool:
        return bool(self._first)

    def has(self, steps: Steps) -> Flags:
        """Which of some steps are in it."""
        import numpy as np

        if not self._first:
            return np.zeros(len(steps), np.bool_)
        at = np.searchsorted(np.array(self._first, np.int64), steps, side="right") - 1
        return (at >= 0) & (steps <= np.array(self._last, np.int64)[at])
