"""How a loss falls: ever more slowly, as towards a floor, or ever faster."""

from __future__ import annotations

from dataclasses import dataclass

from traindx.run import Series

_PART = 5
"""Losses around a moment that are averaged, at least."""


@dataclass(frozen=True, slots=True)
class Fall:
    """By how much a loss fell in the halves of a run, and in its last two quarters.

    Attributes:
        first_half: From the start to the middle.
        second_half: From the middle to the end.
        third_quarter: The first part of that.
        last_quarter: The rest.
    """

    first_half: float
    second_half: float
    third_quarter: float
    last_quarter: float

    @property
    def is_ever_faster(self) -> bool:
        """Whether it gains speed: of a constant acceleration the second half makes three times."""
        ahead = self.second_half > 2.5 * max(self.first_half, 0.0) and self.second_half > 0
        return ahead and self.last_quarter > self.third_quarter


def fall_of(series: Series) -> Fall | None:
    """The fall of a loss; None where there are too few losses around a moment."""
    steps, values = series.steps, series.values
    span = series.step - series.first_step
    if span < 4 * _PART:
        return None
    width = max(span / 20, _PART / 2)
    levels: list[float] = []
    for share in (0.0, 0.5, 0.75, 1.0):
        middle = series.first_step + share * span
        near = values[abs(steps - middle) <= width]
        if not len(near):
            return None
        levels.append(float(near.mean()))
    start, middle, later, end = levels
    return Fall(start - middle, middle - end, middle - later, later - end)
