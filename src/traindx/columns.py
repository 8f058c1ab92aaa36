"""The statistics of one place over the steps, as plain numbers: a fifth of what objects take."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING

from traindx.records import TensorStats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIELDS = ("count", "mean", "m2", "min", "max", "nonfinite", "sampled", "zeros")
"""What is kept of each step, in this order."""

_NUM = len(FIELDS)


class Columns:
    """The statistics of one place by step; steps never go back.

    Attributes:
        steps: The steps measured.
        last: The statistics of the last of them.
        additions: How many measurements were added, merged ones included.
    """

    __slots__ = ("_numbers", "additions", "last", "steps")

    def __init__(self) -> None:
        self.steps = array("q")
        # A row of every step; counts are exact up to 2^53.
        self._numbers = array("d")
        self.last = TensorStats(0, math.nan, math.nan, math.nan, math.nan)
        self.additions = 0

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, step: int, stats: TensorStats) -> None:
        """Add a measurement; one of the last step merges with what is there (micro-batches)."""
        if self.steps and self.steps[-1] == step:
            stats = self.last.merge(stats)
            self._numbers[-_NUM:] = array("d", _row(stats))
        else:
            self.steps.append(step)
            self._numbers.extend(_row(stats))
        self.last = stats
        self.additions += 1

    def __getitem__(self, i: int) -> TensorStats:
        """The statistics of the i-th step measured."""
        if i == len(self.steps) - 1:
            return self.last
        row = self._numbers[_NUM * i : _NUM * (i + 1)]
        count, mean, m2, least, greatest, nonfinite, sampled, zeros = row
        return TensorStats(
            int(count), mean, m2, least, greatest, int(nonfinite), int(sampled), int(zeros)
        )

    def by_step(self) -> dict[int, TensorStats]:
        """All of them."""
        return {step: self[i] for i, step in enumerate(self.steps)}

    def at(self, step: int) -> TensorStats | None:
        """The statistics at exactly this step, None if it was not measured there."""
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
