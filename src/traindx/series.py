"""`Series`: one quantity at one site over the steps; a long one is thinned."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from traindx.records import Site
from traindx.thinning import Pins, kept

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 4096
"""Entries at which a series is thinned."""
SPANS = 512
_FEW = 16


class Series:
    """One quantity at one site over the steps it was measured at.

    Of a long series the first and the last entries are there whole, and of those between the
    extreme ones and first occurrences (`traindx.thinning`); `len` and `for` know of these only.

    Attributes:
        quantity: Its name.
        site: Where it was measured.
        count: Measurements, those included that are kept no more.
        num_nonzero: How many of them were not 0.
        last_finite: The last step with a finite value, one before the first if there is none.
        unchanged_since: The first of the steps up to the last one that all have its value.
        additions: To the statistics that it follows from, as far as they are in it.
        thinnings: Of the statistics that it follows from, as far as they are followed.
    """

    __slots__ = (
        "_pins", "_steps", "_stretch_before", "_values", "additions", "count", "last_finite",
        "num_nonzero", "quantity", "site", "thinnings", "unchanged_since",
    )  # fmt: skip

    def __init__(self, quantity: str, site: Site, pins: Pins | None = None) -> None:
        self.quantity = quantity
        self.site = site
        self._pins = pins or Pins()
        self._steps = array("q")
        self._values = array("d")
        self.count = self.num_nonzero = 0
        self.last_finite = self.unchanged_since = self._stretch_before = 0
        self.additions = self.thinnings = 0

    def append(self, step: int, value: float) -> None:
        """Add one measurement; steps never go back."""
        values = self._values
        if not values:
            self.last_finite = step - 1
            self.unchanged_since = step
        self._stretch_before = self.unchanged_since
        if values and value != values[-1]:
            self.unchanged_since = step
        self._steps.append(step)
        values.append(value)
        self.count += 1
        if value:
            self.num_nonzero += 1
        if math.isfinite(value):
            self.last_finite = step
        if len(values) >= MOST:
            self._thin()

    def extend(self, steps: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Add many, as if one by one."""
        while len(steps) > _FEW:
            # Pinned steps may leave no room.
            room = max(1, min(MOST - len(self._steps), len(steps))) - 1
            self._add_all(steps[:room], values[:room])
            self.append(int(steps[room]), float(values[room]))
            steps, values = steps[room + 1 :], values[room + 1 :]
        for step, value in zip(steps.tolist(), values.tolist(), strict=True):
            self.append(step, value)

    def _add_all(self, steps: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Add as many as there is room for; what `replace_last` needs is left to `append`."""
        import numpy as np

        if not len(steps):
            return
        if not self._values:
            self.last_finite = int(steps[0]) - 1
            self.unchanged_since = int(steps[0])
        before = self._values[-1] if self._values else float(values[0])
        changes = np.flatnonzero(values != np.concatenate([[before], values[:-1]]))
        if len(changes):
            self.unchanged_since = int(steps[changes[-1]])
        finite = np.flatnonzero(np.isfinite(values))
        if len(finite):
            self.last_finite = int(steps[finite[-1]])
        self.num_nonzero += int(np.count_nonzero(values))
        self.count += len(values)
        self._steps.frombytes(steps.astype(np.int64).tobytes())
        self._values.frombytes(values.astype(np.float64).tobytes())

    def add_block(
        self, steps: list[int], step_bytes: bytes, values: NDArray[np.float64],
        changed: int, finite: int, nonzero: int,
    ) -> None:  # fmt: skip
        """Add values of which is known already where they change and are finite; see `extend`."""
        import numpy as np

        if not self._values or len(self._values) + len(steps) >= MOST:
            self.extend(np.array(steps, np.int64), values)
            return
        self._stretch_before = self.unchanged_since  # of what is measured nothing is replaced
        if changed >= 0:
            self.unchanged_since = steps[changed]
        if finite >= 0:
            self.last_finite = steps[finite]
        self.num_nonzero += nonzero
        self.count += len(steps)
        self._steps.frombytes(step_bytes)
        self._values.frombytes(values.tobytes())

    def replace_last(self, value: float) -> None:
        """Put `value` in the place of the last one of a series that follows from statistics."""
        values = self._values
        self.num_nonzero += bool(value) - bool(values[-1])
        values[-1] = value
        same = len(values) > 1 and value == values[-2]
        self.unchanged_since = self._stretch_before if same else self._steps[-1]
        if math.isfinite(value):
            self.last_finite = self._steps[-1]
        elif self.last_finite == self._steps[-1]:
            self.last_finite = next(
                (s for s, v in zip(reversed(self._steps), reversed(values), strict=True)
                 if math.isfinite(v)),
                self._steps[0] - 1,
            )  # fmt: skip

    def _thin(self) -> None:
        import numpy as np

        steps, values = self.steps, self.values
        flags = [~np.isfinite(values)]
        rarest = [_only(np.isnan(values)), _only(np.isinf(values)), *_first_fall(values)]
        keep = kept(steps, SPANS, self._pins, [values], [*flags, *rarest])
        self._steps = array("q", steps[keep].tobytes())
        self._values = array("d", values[keep].tobytes())

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return iter(zip(self._steps, self._values, strict=True))

    @property
    def steps(self) -> NDArray[np.int64]:
        """The steps, as an array."""
        import numpy as np

        return np.array(self._steps, dtype=np.int64)

    @property
    def values(self) -> NDArray[np.float64]:
        """The values, as an array."""
        import numpy as np

        return np.array(self._values, dtype=np.float64)

    @property
    def first(self) -> float:
        """The first value."""
        return self._values[0]

    @property
    def last(self) -> float:
        """The last value."""
        return self._values[-1]

    @property
    def first_step(self) -> int:
        """The first step measured."""
        return self._steps[0]

    @property
    def step(self) -> int:
        """The last step measured."""
        return self._steps[-1]

    def head(self, size: int) -> Sequence[float]:
        """The first `size` values, fewer if there are fewer."""
        return self._values[:size]

    def tail(self, size: int) -> Sequence[float]:
        """The last `size` values, fewer if there are fewer."""
        return self._values[-size:] if size else ()

    def last_steps(self, size: int) -> Sequence[int]:
        """The last `size` steps measured, fewer if there are fewer."""
        return self._steps[-size:] if size else ()

    def before_last(self, size: int) -> Sequence[float]:
        """The `size` values before the last one, fewer if there are fewer."""
        end = max(len(self._values) - 1, 0)
        return self._values[max(0, end - size) : end]

    def before(self, step: int, size: int) -> Sequence[float]:
        """The last `size` values measured before `step`, fewer if there are fewer."""
        end = bisect_left(self._steps, step)
        return self._values[max(0, end - size) : end]

    def step_before(self, step: int) -> int | None:
        """The last step measured before `step`, None if there is none."""
        i = bisect_left(self._steps, step)
        return self._steps[i - 1] if i else None

    def at(self, step: int) -> float | None:
        """The value at exactly this step, None if it was not measured there or is not kept."""
        if self._steps and self._steps[-1] == step:  # what is asked most, while a run goes on
            return self._values[-1]
        i = bisect_left(self._steps, step)
        return self._values[i] if i < len(self) and self._steps[i] == step else None


def extend(some: Sequence[Series], steps: NDArray[np.int64], values: NDArray[np.float64]) -> None:
    """Add to each of n series its values [n, m] at m later steps, as if one by one."""
    import numpy as np

    last = np.array([series.tail(1)[0] if len(series) else math.nan for series in some])
    # Of each series the last value that is another than the one before, and the last finite one.
    others = values != np.concatenate([last[:, None], values[:, :-1]], axis=1)
    changed, finite = (_last_true(flags) for flags in (others, np.isfinite(values)))
    nonzero = np.count_nonzero(values, axis=1).tolist()
    step_bytes, step_list = steps.tobytes(), steps.tolist()
    for series, own, change, fine, num in zip(some, values, changed, finite, nonzero, strict=True):
        series.add_block(step_list, step_bytes, own, change, fine, num)


def _last_true(flags: NDArray[np.bool_]) -> list[int]:
    """Of each row [n, m] where its last mark is, -1 if there is none."""
    import numpy as np

    num = flags.shape[1]
    return np.where(flags.any(axis=1), num - 1 - flags[:, ::-1].argmax(axis=1), -1).tolist()


def _only(marks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The first of some marks alone."""
    first = marks.argmax()
    only = marks & False
    only[first] = marks[first]
    return only


def _first_fall(values: NDArray[np.float64]) -> Iterator[NDArray[np.bool_]]:
    """The first value below the one before it, and that one: where a warmup ends."""
    import numpy as np

    falls = _only(np.concatenate([[False], values[1:] < values[:-1]]))
    yield falls
    yield np.roll(falls, -1)
