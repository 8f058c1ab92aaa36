"""What a run file holds of some steps in a row: numbers as arrays, everything else as items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from traindx.records import Event, EventKind, Item, Point, Record, Scalar, Site, TensorStats, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Reals = NDArray[np.float64]

Places = dict[int, tuple[Site, str]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The items of a stretch of a run; n scalars and m records in the order they were written.

    Attributes:
        places: What the numbers of places stand for; all that are used are there.
        scalar_steps: [n]
        scalar_places: [n]
        values: [n]
        record_steps: [m]
        record_places: [m], of points.
        counts: [m, 4]: count, nonfinite, sampled, zeros.
        moments: [m, 4]: mean, m2, min, max.
        others: All other items, in turn.
    """

    places: Places
    scalar_steps: Integers
    scalar_places: Integers
    values: Reals
    record_steps: Integers
    record_places: Integers
    counts: Integers
    moments: Reals
    others: list[Item]

    def items(self) -> list[Item]:
        """All of them, in turn: in a step what is no number, then scalars, records and vectors."""
        columns = self.scalar_steps, self.scalar_places, self.values
        items = [item for item in self.others if not isinstance(item, Vector)]
        for step, place, value in zip(*(column.tolist() for column in columns), strict=True):
            site, what = self.places[place]
            items.append(Scalar(step, what, value, site))
        columns = self.record_steps, self.record_places, self.counts, self.moments
        for step, place, counts, moments in zip(*(c.tolist() for c in columns), strict=True):
            site, what = self.places[place]
            count, *rest = counts
            items.append(Record(step, site, Point(what), TensorStats(count, *moments, *rest)))
        items += [item for item in self.others if isinstance(item, Vector)]
        return sorted(items, key=turn)


def of_items(items: list[Item]) -> Stretch:
    """Items in turn, none of them as arrays."""
    import numpy as np

    steps, numbers = np.zeros(0, np.int64), np.zeros(0)
    counts, moments = np.zeros((0, 4), np.int64), np.zeros((0, 4))
    return Stretch({}, steps, steps, numbers, steps, steps, counts, moments, items)


def turn(item: Item) -> tuple[int, int, bool]:
    """A run starts first and ends last, and a step is measured once everything of it is there."""
    kind = item.kind if isinstance(item, Event) else None
    part = -1 if kind is EventKind.STARTED else 1 if kind is EventKind.ENDED else 0
    return part, item.step, kind is EventKind.MEASURED


class Takes(Protocol):
    """What takes the numbers of a run."""

    def add_row(self, point: Point, site: Site, step: int, row: Sequence[float], /) -> None:
        """Take a record."""

    def add_number(self, quantity: str, site: Site, step: int, value: float, /) -> None:
        """Take a scalar."""

    def add_numbers(self, quantity: str, site: Site, steps: Integers, values: Reals, /) -> None:
        """Take scalars of one place."""

    def add_rows(
        self, places: tuple[tuple[Point, Site], ...], step: int, counts: Integers, moments: Reals, /
    ) -> None:
        """Take records of one step."""

    def add_scalars(self, names: tuple[tuple[str, Site], ...], step: int, values: Reals, /) -> None:
        """Take scalars of one step."""


class Portions:
    """Hands on the numbers of a stretch, up to one measured step after another."""

    def __init__(self, stretch: Stretch, takes: Takes) -> None:
        import numpy as np

        kind = EventKind.MEASURED
        measured = [e.step for e in stretch.others if isinstance(e, Event) and e.kind is kind]
        marks = np.array(measured, np.int64)
        self._places = stretch.places
        self._takes = takes
        self._scalars = _in_steps(stretch.scalar_steps, stretch.scalar_places, stretch.values)
        columns = stretch.record_places, stretch.counts, stretch.moments
        self._records = _in_steps(stretch.record_steps, *columns)
        self._ends = [
            [0, *steps.searchsorted(marks, side="right").tolist(), len(steps)]
            for steps, *_ in (self._scalars, self._records)
        ]
        self._mark = 0
        self._names: dict[bytes, Any] = {}

    def up_to_next_mark(self) -> None:
        """Everything up to the next measured step, that step included."""
        self._mark += 1
        (start, end), (first, last) = (ends[self._mark - 1 : self._mark + 1] for ends in self._ends)
        if end > start:
            self._take_scalars(start, end)
        if last > first:
            self._take_records(first, last)

    def to_the_end(self) -> None:
        """What comes after the last of them."""
        self.up_to_next_mark()

    def _take_scalars(self, start: int, end: int) -> None:
        """Those of the last step together, those of the steps before it place by place."""
        steps, places, values = self._scalars
        step = int(steps[end - 1])
        row = start + int(steps[start:end].searchsorted(step))
        for place, at in _by_place(places[start:row]):
            site, quantity = self._places[place]
            some = steps[start:row][at], values[start:row][at]
            if len(at) > 1:
                self._takes.add_numbers(quantity, site, *some)
            else:
                self._takes.add_number(quantity, site, int(some[0][0]), float(some[1][0]))
        names = self._named(places[row:end], str)
        self._takes.add_scalars(names, step, values[row:end])

    def _take_records(self, start: int, end: int) -> None:
        steps, places, counts, moments = self._records
        while start < end:
            step = int(steps[start])
            stop = start + int(steps[start:end].searchsorted(step, side="right"))
            part = slice(start, stop)
            named = self._named(places[part], Point)
            self._takes.add_rows(named, step, counts[part], moments[part])
            start = stop

    def _named(self, places: Integers, what: Callable[[str], Any]) -> Any:
        """What and where some numbers are; the same tuple for the same places."""
        key = places.tobytes()
        found = self._names.get(key)
        if found is None:
            sites = (self._places[place] for place in places.tolist())
            found = self._names[key] = tuple((what(name), site) for site, name in sites)
        return found


def _in_steps(steps: Integers, *columns: Any) -> tuple[Any, ...]:
    """The entries in order of step."""
    import numpy as np

    if len(steps) < 2 or (steps[1:] >= steps[:-1]).all():
        return steps, *columns
    order = np.argsort(steps, kind="stable")
    return steps[order], *(column[order] for column in columns)


def _by_place(places: Integers) -> Iterator[tuple[int, Any]]:
    """Of each place, where its entries are."""
    import numpy as np

    if not len(places):
        return
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        yield int(ordered[start]), order[start:end]
