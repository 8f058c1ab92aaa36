"""Items on their way into a run file."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from traindx.records import (
    Bundle,
    Description,
    Event,
    EventKind,
    Item,
    Record,
    Scalar,
    Site,
    Vector,
)
from traindx.store.nouns import FACTS, OPTIONS, facts_kind
from traindx.store.numbers import MOST, naturals_packed, packed, reals_packed, steps_packed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Reals = NDArray[np.float64]

Row = tuple[Any, ...]
"""The columns of a table, without id and batch."""


class Place(NamedTuple):
    """What is measured where; the large tables hold its number only."""

    site: Site
    what: str


class _Numbers:
    """Items of one kind as plain numbers, a tenth of what rows take.

    Attributes:
        steps: The step of each item.
    """

    def __init__(self, num_counts: int, num_reals: int) -> None:
        self._num_counts = num_counts
        self._num_reals = num_reals
        self.clear()

    def clear(self) -> None:
        self.steps = array("q")
        self._places = array("q")
        self._counts = array("q")
        self._reals = array("d")

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, step: int, place: int, counts: tuple[int, ...], reals: tuple[float, ...]) -> None:
        """Take one item, whole or not at all: somebody may press Ctrl+C in between."""
        try:
            self._places.append(place)
            self._counts.extend(counts)
            self._reals.extend(reals)
            self.steps.append(step)
        except BaseException:
            self._cut(len(self.steps))
            raise

    def _cut(self, num: int) -> None:
        del self._places[num:]
        del self._counts[num * self._num_counts :]
        del self._reals[num * self._num_reals :]

    def add_all(
        self, step: int, places: array[int], counts: array[int], reals: array[float]
    ) -> None:
        """Take several items of one step, all of them or none."""
        try:
            self._places.extend(places)
            self._counts.extend(counts)
            self._reals.extend(reals)
            self.steps.extend(array("q", [step]) * len(places))
        except BaseException:
            self._cut(len(self.steps))
            raise

    def drop(self, dropped: set[int]) -> None:
        """Drop what is of these steps."""
        steps, places, counts, reals = self._columns()
        left = [i for i, step in enumerate(self.steps) if step not in dropped]
        self.steps = array("q", steps[left].tobytes())
        self._places = array("q", places[left].tobytes())
        self._counts = array("q", counts[left].tobytes())
        self._reals = array("d", reals[left].tobytes())

    def _columns(self) -> tuple[Integers, Integers, Integers, Reals]:
        """Steps [n], places [n], counts [n, num_counts] and numbers [n, num_reals]."""
        import numpy as np

        count = len(self.steps)
        counts: Integers = np.array(self._counts, np.int64)
        reals: Reals = np.array(self._reals, np.float64)
        return (
            np.array(self.steps, np.int64),
            np.array(self._places, np.int64),
            np.reshape(counts, (count, self._num_counts)),
            np.reshape(reals, (count, self._num_reals)),
        )

    def rows(self) -> Iterator[Row]:
        """As rows of a packed table."""
        steps, places, counts, reals = self._columns()
        for start in range(0, len(self), MOST):
            part = slice(start, start + MOST)
            yield _row(steps[part], places[part], counts[part], reals[part])


def _row(steps: Integers, places: Integers, counts: Integers, reals: Reals) -> Row:
    first = int(steps.min())
    # Places are counted from 1, so that there are bytes for each of them.
    head = len(steps), first, steps_packed(steps, first), naturals_packed(places)
    naturals = [naturals_packed(counts[:, i]) for i in range(counts.shape[1])]
    # The count of elements stands before the moments, the other counts behind them.
    numbers = [reals_packed(reals[:, i]) for i in range(reals.shape[1])]
    return (*head, *naturals[:1], *numbers, *naturals[1:])


_NONE = array("q")
_SHARED = 16
"""Tuples of places that are remembered at most; several bundles have one in common."""


class Waiting:
    """What is not in the file yet.

    Attributes:
        last_step: Step of the last item taken.
    """

    def __init__(self) -> None:
        self.last_step = -1
        self._scalars = _Numbers(0, 1)
        self._records = _Numbers(4, 4)
        self._rows: dict[str, list[Row]] = {
            table: [] for table in ("vectors", "events", "descriptions")
        }
        self._places: dict[Place, int] = {}
        self._known = 0
        self._numbers: dict[int, tuple[object, array[int]]] = {}  # what is held keeps its id

    def __len__(self) -> int:
        """Items waiting."""
        return len(self._scalars) + len(self._records) + sum(map(len, self._rows.values()))

    def add(self, item: Item) -> None:
        """Take one item."""
        step = int(item.step)
        match item:
            case Scalar():
                place = self._place(item.site, item.quantity)
                self._scalars.add(step, place, (), (item.value,))
            case Record(stats=stats):
                place = self._place(item.site, item.point.value)
                counts = (
                    int(stats.count),
                    int(stats.nonfinite),
                    int(stats.sampled),
                    int(stats.zeros),
                )
                moments = stats.mean, stats.m2, stats.min, stats.max
                self._records.add(step, place, counts, moments)
            case Bundle():
                records, scalars = self._all(item.places), self._all(item.names)
                self._records.add_all(step, records, item.counts, item.moments)
                self._scalars.add_all(step, scalars, _NONE, item.values)
            case Vector(values=values):
                place = self._place(item.site, item.quantity)
                self._rows["vectors"].append((step, place, len(values), packed(values)))
            case Event():
                place = self._place(item.site, item.kind.value)
                self._rows["events"].append((step, place, OPTIONS.dumps(item.detail)))
            case Description():
                kind = facts_kind(item.facts)
                row = (step, kind, FACTS[kind].dumps(item.facts))
                self._rows["descriptions"].append(row)
        self.last_step = item.step

    def _all(self, named: tuple[tuple[str, Site], ...]) -> array[int]:
        """The numbers of a bundle's places, looked up once for all bundles that share them."""
        known = self._numbers.get(id(named))
        if known is None:
            if len(self._numbers) >= _SHARED:
                self._numbers.clear()
            numbers = array("q", [self._place(site, str(what)) for what, site in named])
            known = self._numbers[id(named)] = named, numbers
        return known[1]

    def _place(self, site: Site, what: str) -> int:
        place = Place(site, what)
        number = self._places.get(place)
        if number is None:
            number = self._places[place] = len(self._places) + 1
        return number

    def tables(self, batch: int) -> Iterator[tuple[str, list[Row]]]:
        """The rows to insert, as the commit with this number."""
        yield "places", [_named(*new) for new in islice(self._places.items(), self._known, None)]
        for table, numbers in (("scalars", self._scalars), ("records", self._records)):
            yield table, [(None, batch, *row) for row in numbers.rows()]
        for table, rows in self._rows.items():
            yield table, [(None, batch, *row) for row in rows]

    def stored(self) -> None:
        """All of them are in the file now."""
        self._known = len(self._places)
        self._scalars.clear()
        self._records.clear()
        for rows in self._rows.values():
            rows.clear()

    def thin(self) -> int:
        """Drop every second step, measured ones only if need be; say how many items that were."""
        before = len(self)
        measured = {*self._records.steps}
        others = {*self._scalars.steps} - measured
        self._drop({*sorted(others)[1::2]})
        if len(self) > 0.75 * before:
            self._drop({*sorted(measured)[1::2]})
        return before - len(self)

    def _drop(self, steps: set[int]) -> None:
        marks = {n for place, n in self._places.items() if place.what == EventKind.MEASURED.value}
        self._scalars.drop(steps)
        self._records.drop(steps)
        rows = self._rows
        rows["vectors"] = [row for row in rows["vectors"] if row[0] not in steps]
        rows["events"] = [
            row for row in rows["events"] if row[0] not in steps or row[1] not in marks
        ]


def _named(place: Place, number: int) -> Row:
    """A place as a row."""
    return number, *map(_text, (place.site.model, place.site.fqn, place.what))


def _text(text: str) -> str | bytes:
    """The text, or its bytes where it holds half a surrogate pair, which SQLite does not take."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")
    return text
