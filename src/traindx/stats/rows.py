"""`Row`: the sums over one tensor, from which its statistics follow."""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

Number = float | Tensor
"""A float, or a zero-dimensional tensor that is still on its device."""

Statistics = tuple[int, float, float, float, float, int, int, int]
"""The values of `TensorStats` in their order, a fifth of what the object costs."""


class Row(NamedTuple):
    """Sums over one tensor, possibly still on its device.

    Attributes:
        size: Elements.
        total: Sum of the elements.
        m2: Sum of the squares of their distances from the mean.
        min: Least element; of a large tensor on the CPU, where it takes several passes, among those
            of the sample.
        max: Greatest element; likewise.
        nonfinite: Elements that are NaN or infinite; -1 where only `min` and `max` can tell.
        sampled: Elements looked at for `nonzero`.
        nonzero: Elements of the sample that are not 0.
    """

    size: int
    total: Number
    m2: Number
    min: Number
    max: Number
    nonfinite: int = -1
    sampled: int = 0
    nonzero: Number = 0.0

    def divided(self, scale: Number) -> Row:
        """The sums of the tensor divided by a positive `scale` (of an AMP loss)."""
        return self._replace(
            total=self.total / scale,
            m2=self.m2 / scale / scale,
            min=self.min / scale,
            max=self.max / scale,
        )

    def repeated(self, times: int) -> Row:
        """The sums of the tensor so many times over."""
        return self._replace(
            size=self.size * times,
            total=self.total * times,
            m2=self.m2 * times,
            nonfinite=max(self.nonfinite * times, -1),
        )

    @property
    def fields(self) -> tuple[Number, Number, Number, Number, Number]:
        """What may still be on the device."""
        return self.total, self.m2, self.min, self.max, self.nonzero

    def numbers(self) -> Statistics:
        """The statistics, of a row whose fields are on the host."""
        size, total, m2, low, high, nonfinite, sampled, nonzero = self
        # NaN only where an extreme is: which are infinite, or NaN, if any element is.
        finite = math.isfinite(low) and math.isfinite(high)
        return (
            size,
            float(total) / size if finite else math.nan,
            float(m2) if finite else math.nan,
            float(low),
            float(high),
            nonfinite if nonfinite >= 0 else int(not finite),
            sampled,
            sampled - int(nonzero),
        )
