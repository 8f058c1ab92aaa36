"""Items on their way into a run file, as rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from traindx.records import Description, Event, EventKind, Item, Record, Scalar, Site, Vector
from traindx.store.nouns import FACTS, OPTIONS, facts_kind
from traindx.store.numbers import packed
from traindx.store.schema import INSERTS

Row = tuple[Any, ...]
"""Id, step, place and the rest, as in `schema.TABLES`."""


class Place(NamedTuple):
    """What is measured where; the large tables hold its number only."""

    site: Site
    what: str


class Waiting:
    """Rows that are not in the file yet.

    Attributes:
        tables: The rows by table.
        last_step: Step of the last item taken.
    """

    def __init__(self) -> None:
        self.tables: dict[str, list[Row]] = {table: [] for table in INSERTS}
        self.last_step = -1
        self._places: dict[Place, int] = {}
        self._next = 1

    def __len__(self) -> int:
        """Items waiting."""
        return sum(len(rows) for table, rows in self.tables.items() if table != "places")

    def add(self, item: Item) -> None:
        """Take one item."""
        row: Row
        match item:
            case Scalar():
                row = (self._place(item.site, item.quantity), _stored(item.value))
                table = "scalars"
            case Record(stats=stats):
                moments = map(_stored, (stats.mean, stats.m2, stats.min, stats.max))
                sample = (int(stats.nonfinite), int(stats.sampled), int(stats.zeros))
                place = self._place(item.site, item.point.value)
                row = (place, int(stats.count), *moments, *sample)
                table = "records"
            case Vector(values=values):
                row = (self._place(item.site, item.quantity), len(values), packed(values))
                table = "vectors"
            case Event():
                detail = OPTIONS.dumps(item.detail)
                row = (self._place(item.site, item.kind.value), detail)
                table = "events"
            case Description():
                kind = facts_kind(item.facts)
                row = (kind, FACTS[kind].dumps(item.facts))
                table = "descriptions"
        self.tables[table].append((self._next, int(item.step), *row))
        self._next += 1
        self.last_step = item.step

    def _place(self, site: Site, what: str) -> int:
        place = Place(site, what)
        number = self._places.get(place)
        if number is None:
            number = self._places[place] = len(self._places) + 1
            self.tables["places"].append((number, *map(_text, (site.model, site.fqn, what))))
        return number

    def stored(self) -> None:
        """All of them are in the file now."""
        for rows in self.tables.values():
            rows.clear()

    def thin(self) -> int:
        """Drop every second step, measured ones only if need be; say how many items that were."""
        before = len(self)
        measured = {row[1] for row in self.tables["records"]}
        others = {row[1] for row in self.tables["scalars"]} - measured
        self._drop({*sorted(others)[1::2]})
        if len(self) > 0.75 * before:
            self._drop({*sorted(measured)[1::2]})
        return before - len(self)

    def _drop(self, steps: set[int]) -> None:
        marks = {n for place, n in self._places.items() if place.what == EventKind.MEASURED.value}
        for table in ("scalars", "records", "vectors"):
            self.tables[table] = [row for row in self.tables[table] if row[1] not in steps]
        self.tables["events"] = [
            row for row in self.tables["events"] if row[1] not in steps or row[2] not in marks
        ]


def _stored(value: float) -> float | None:
    return None if math.isnan(value) else float(value)  # SQLite has infinities but no NaN


def _text(text: str) -> str | bytes:
    """The text, or its bytes where it holds half a surrogate pair, which SQLite does not take."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")
    return text
