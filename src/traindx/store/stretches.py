"""The stretches of a run file of the third schema: its rows, commit after commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from traindx.records import Item, Point
from traindx.store.codec import MalformedError
from traindx.store.numbers import naturals_unpacked, num_of, reals_unpacked, steps_unpacked
from traindx.store.rows import (
    check_stored,
    description,
    event,
    integer,
    member,
    place_at,
    read_places,
    vector,
)
from traindx.store.stretch import Places, Stretch, turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST = 200_000
"""Items at which a stretch ends with the commit going on."""

_TABLES = ("events", "descriptions", "scalars", "records", "vectors")
Row = tuple[Any, ...]


class _Cursor:
    """The rows of a table in the order they were written, batch by batch."""

    def __init__(self, db: sqlite3.Connection, table: str) -> None:
        self._rows = db.execute(f"SELECT * FROM {table} ORDER BY id")
        self._next: Row | None = next(self._rows, None)
        self._batch = 0

    @property
    def batch(self) -> int | None:
        """The batch of the next row, None after the last."""
        if self._next is None:
            return None
        batch = integer(self._next[1])
        if batch < self._batch:
            raise MalformedError("its commits are out of order")
        return batch

    def take(self, batch: int) -> Iterator[Row]:
        """The columns, without id and batch, of the rows of this batch."""
        while self.batch == batch:
            assert self._next is not None
            yield self._next[2:]
            self._next, self._batch = next(self._rows, None), batch


def read_stretches(db: sqlite3.Connection) -> Iterator[Stretch]:
    """The run, stretch by stretch, each made of whole commits.

    Raises:
        MalformedError: A value does not belong in its column, or a row is missing.
    """
    places = read_places(db)
    cursors = {table: _Cursor(db, table) for table in _TABLES}
    found = 0
    collected = _Collected(places)
    while (batch := _least(cursors)) is not None:
        for table, cursor in cursors.items():
            for row in cursor.take(batch):
                collected.add(table, row)
        if collected.count >= MOST:
            found += collected.count
            yield collected.stretch()
            collected = _Collected(places)
    check_stored(db, found + collected.count)
    yield collected.stretch()


def _least(cursors: dict[str, _Cursor]) -> int | None:
    return min((b for c in cursors.values() if (b := c.batch) is not None), default=None)


class _Collected:
    """Rows on their way into a stretch.

    Attributes:
        count: The items in them.
    """

    def __init__(self, places: Places) -> None:
        self.count = 0
        self._places = places
        self._scalars: list[tuple[Any, ...]] = []
        self._records: list[tuple[Any, ...]] = []
        self._others: list[Item] = []

    def add(self, table: str, row: Row) -> None:
        """Take a row of a table."""
        if table == "scalars":
            self.count += self._add_packed(self._scalars, row, 1)
        elif table == "records":
            self.count += self._add_packed(self._records, row, 8)
        else:
            self._others.append(_other(self._places, table, row))
            self.count += 1

    def _add_packed(self, into: list[tuple[Any, ...]], row: Row, num_columns: int) -> int:
        given, first_step, steps, places, *columns = row
        count = num_of(given)
        assert len(columns) == num_columns
        at = steps_unpacked(count, integer(first_step), steps)
        where = naturals_unpacked(count, places)
        if num_columns == 1:
            into.append((at, where, reals_unpacked(count, columns[0])))
            return count
        counts = (naturals_unpacked(count, columns[i]) for i in (0, 5, 6, 7))
        moments = (reals_unpacked(count, columns[i]) for i in (1, 2, 3, 4))
        into.append((at, where, *counts, *moments))
        return count

    def stretch(self) -> Stretch:
        """All of it."""
        import numpy as np

        steps, places, values = _joined(self._scalars, 3)
        at, where, *columns = _joined(self._records, 10)
        for number in np.unique(places).tolist():
            place_at(self._places, number)
        for number in np.unique(where).tolist():
            member(Point, place_at(self._places, number)[1])
        return Stretch(
            self._places,
            steps.astype(np.int64),
            places.astype(np.int64),
            values,
            at.astype(np.int64),
            where.astype(np.int64),
            np.stack(columns[:4], axis=1).astype(np.int64),
            np.stack(columns[4:], axis=1),
            sorted(self._others, key=turn),
        )


def _joined(parts: list[tuple[Any, ...]], num: int) -> list[NDArray[Any]]:
    import numpy as np

    if not parts:
        return [np.zeros(0)] * num
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _other(places: Places, table: str, row: Row) -> Item:
    if table == "vectors":
        return vector(places, *row)
    return event(places, *row) if table == "events" else description(*row)
