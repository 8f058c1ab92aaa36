"""What a run file holds of some steps in a row: numbers as arrays, everything else as items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traindx.records import Event, EventKind, Item, Point, Record, Scalar, Site, TensorStats, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Reals = NDArray[np.float64]

Places = dict[int, tuple[Site, str]]
AddNumber = Callable[[str, Site, int, float], None]
AddNumbers = Callable[..., None]
AddRow = Callable[[Point, Site, int, Sequence[float]], None]


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


class Feeds:
    """Hands on the numbers of a stretch, place by place, up to one measured step after another."""

    def __init__(self, feeds: Sequence[Callable[[int], None]], num_marks: int) -> None:
        self._feeds = feeds
        self._num_marks = num_marks
        self._mark = 0

    def up_to_next_mark(self) -> None:
        """Everything up to the next measured step, that step included."""
        for feed in self._feeds:
            feed(self._mark)
        self._mark += 1

    def to_the_end(self) -> None:
        """What comes after the last of them."""
        for feed in self._feeds:
            feed(self._num_marks)


def feeds(
    stretch: Stretch, add_number: AddNumber, add_numbers: AddNumbers, add_row: AddRow
) -> Feeds:
    """The numbers of a stretch, ready to be handed to these."""
    import numpy as np

    kind = EventKind.MEASURED
    measured = [e.step for e in stretch.others if isinstance(e, Event) and e.kind is kind]
    marks = np.array(measured, np.int64)
    found: list[Callable[[int], None]] = []
    for place, at in _by_place(stretch.scalar_places, stretch.scalar_steps):
        site, what = stretch.places[place]
        steps, values = stretch.scalar_steps[at], stretch.values[at]
        found.append(_scalar_feed(what, site, steps, values, marks, add_number, add_numbers))
    counts, moments = stretch.counts, stretch.moments
    rows: Reals = np.concatenate([counts[:, :1], moments, counts[:, 1:]], axis=1, dtype=np.float64)
    for place, at in _by_place(stretch.record_places, stretch.record_steps):
        site, what = stretch.places[place]
        found.append(
            _record_feed(Point(what), site, stretch.record_steps[at], rows[at], marks, add_row)
        )
    return Feeds(found, len(marks))


def _by_place(places: Integers, steps: Integers) -> Iterator[tuple[int, Any]]:
    """Of each place, where its entries are, by step."""
    import numpy as np

    if not len(places):
        return
    order = np.lexsort((steps, places))
    ordered = places[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        yield int(ordered[start]), order[start:end]


def _ends(steps: Integers, marks: Integers) -> list[int]:
    """How many entries come up to each mark, and how many there are."""
    return [*steps.searchsorted(marks, side="right").tolist(), len(steps)]


def _scalar_feed(
    quantity: str, site: Site, steps: Integers, values: Reals, marks: Integers,
    add_number: AddNumber, add_numbers: AddNumbers,
) -> Callable[[int], None]:  # fmt: skip
    ends, step_list, value_list = _ends(steps, marks), steps.tolist(), values.tolist()
    at = 0

    def feed(mark: int) -> None:
        nonlocal at
        start, end = at, ends[mark]
        if end == start + 1:
            add_number(quantity, site, step_list[start], value_list[start])
        elif end > start:
            add_numbers(quantity, site, steps[start:end], values[start:end])
        at = end

    return feed


def _record_feed(
    point: Point, site: Site, steps: Integers, rows: Reals, marks: Integers, add_row: AddRow
) -> Callable[[int], None]:
    ends, step_list, row_list = _ends(steps, marks), steps.tolist(), rows.tolist()
    at = 0

    def feed(mark: int) -> None:
        nonlocal at
        start, end = at, ends[mark]
        for i in range(start, end):
            add_row(point, site, step_list[i], row_list[i])
        at = end

    return feed
