"""The statistics of one place over the steps, as plain numbers: a fifth of what objects take."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from traindx.records import TensorStats
from traindx.thinning import Pins, kept

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIELDS = ("count", "mean", "m2", "min", "max", "nonfinite", "sampled", "zeros")
"""What is kept of each step, in this order."""

MOST = 2048
"""Steps at which the statistics of a place are thinned."""
SPANS = 128

_NOTHING = TensorStats(0, math.nan, math.nan, math.nan, math.nan)
_NUM = len(FIELDS)
_NONFINITE = FIELDS.index("nonfinite")


class Columns:
    """The statistics of one place by step; steps never go back.

    Of many steps the first and the last are there whole, and of those between the ones with the
    extreme sizes and the first that are not finite (`traindx.thinning`).

    Attributes:
        steps: The steps measured, as far as they are kept.
        count: How many steps were measured.
        additions: How many measurements were added, merged ones included.
        thinnings: How often it has been thinned.
    """

    __slots__ = ("_last", "_numbers", "_pins", "additions", "count", "steps", "thinnings")

    def __init__(self, pins: Pins | None = None) -> None:
        self.steps = array("q")
        # A row of every step; counts are exact up to 2^53.
        self._numbers = array("d")
        self._last: TensorStats | None = None
        self._pins = pins or Pins()
        self.count = self.additions = self.thinnings = 0

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, step: int, stats: TensorStats) -> None:
        """Add a measurement; one of the last step merges with what is there (micro-batches)."""
        if self.steps and self.steps[-1] == step:
            stats = self.last.merge(stats)
            self._numbers[-_NUM:] = array("d", _row(stats))
            self.additions += 1
        else:
            self.append(step, _row(stats))
        self._last = stats

    def add_row(self, step: int, row: Sequence[float]) -> None:
        """Add a measurement as its `FIELDS`."""
        if self.steps and self.steps[-1] == step:
            self.add(step, _stats(row))
        else:
            self.append(step, row)

    def append(self, step: int, row: Sequence[float]) -> None:
        """Add the `FIELDS` of a later step."""
        self.steps.append(step)
        self._numbers.extend(row)
        self._last = None
        self.count += 1
        self.additions += 1
        if len(self.steps) >= MOST:
            self._thin()

    def extend(self, steps: NDArray[np.int64], rows: NDArray[np.float64]) -> None:
        """Add the `FIELDS` [n, fields] of many later steps, as if one by one."""
        while len(steps):
            room = max(1, MOST - len(self.steps))  # pinned steps may leave none
            self.steps.frombytes(steps[:room].tobytes())
            self._numbers.frombytes(rows[:room].tobytes())
            added = min(room, len(steps))
            self._last = None
            self.count += added
            self.additions += added
            if len(self.steps) >= MOST:
                self._thin()
            steps, rows = steps[room:], rows[room:]

    def _thin(self) -> None:
        import numpy as np

        steps = np.array(self.steps, np.int64)
        of = self.fields()
        with np.errstate(all="ignore"):
            mean_square = of["mean"] * of["mean"] + of["m2"] / of["count"]
        reach = np.maximum(np.abs(of["min"]), np.abs(of["max"]))
        keep = kept(steps, SPANS, self._pins, [mean_square, reach], [of["nonfinite"] > 0])
        rows = np.reshape(np.array(self._numbers, np.float64), (len(steps), _NUM))
        self.steps = array("q", steps[keep].tobytes())
        self._numbers = array("d", rows[keep].tobytes())
        self.thinnings += 1

    @property
    def last(self) -> TensorStats:
        """The statistics of the last step."""
        if self._last is None:
            self._last = self._at(len(self.steps) - 1) if self.steps else _NOTHING
        return self._last

    @property
    def last_row(self) -> Sequence[float]:
        """The `FIELDS` of the last step."""
        return self._numbers[-_NUM:]

    @property
    def is_broken(self) -> bool:
        """Whether something was not finite at the last step."""
        return bool(self.steps) and self._numbers[_NONFINITE - _NUM] != 0

    def __getitem__(self, i: int) -> TensorStats:
        """The statistics of the i-th step kept."""
        return self.last if i == len(self.steps) - 1 else self._at(i)

    def _at(self, i: int) -> TensorStats:
        return _stats(self._numbers[_NUM * i : _NUM * (i + 1)])

    def by_step(self) -> dict[int, TensorStats]:
        """All that are kept."""
        return {step: self[i] for i, step in enumerate(self.steps)}

    def at(self, step: int) -> TensorStats | None:
        """The statistics at exactly this step, None if it was not measured there or is not kept."""
        i = bisect_left(self.steps, step)
        return self[i] if i < len(self) and self.steps[i] == step else None

    def fields(self) -> dict[str, NDArray[np.float64]]:
        """Each of `FIELDS` over the steps."""
        import numpy as np

        return {name: np.array(self._numbers[i::_NUM]) for i, name in enumerate(FIELDS)}


def _row(stats: TensorStats) -> tuple[float, ...]:
    return (
        stats.count, stats.mean, stats.m2, stats.min, stats.max, stats.nonfinite, stats.sampled,
        stats.zeros,
    )  # fmt: skip


def _stats(row: Sequence[float]) -> TensorStats:
    count, mean, m2, least, greatest, nonfinite, sampled, zeros = row
    return TensorStats(
        int(count), mean, m2, least, greatest, int(nonfinite), int(sampled), int(zeros)
    )
