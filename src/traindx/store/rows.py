"""What is in a row of a run file; of the first two schemas, all items from a row each."""

from __future__ import annotations

import math
import reprlib
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from operator import itemgetter
from typing import TypeVar

from traindx.records import (
    Description,
    Event,
    EventKind,
    Item,
    Point,
    Record,
    Scalar,
    Site,
    TensorStats,
    Vector,
)
from traindx.store.codec import MalformedError
from traindx.store.nouns import FACTS, OPTIONS
from traindx.store.numbers import unpacked
from traindx.store.stretch import Places, turn

E = TypeVar("E", Point, EventKind)


def read_items(db: sqlite3.Connection, version: int) -> list[Item]:
    """All items of a file of schema 1 or 2, in the order in which a rule engine takes them.

    Raises:
        MalformedError: A value is not of its column's type, or a row is missing.
    """
    places = read_places(db)
    numbered = [*_scalars(db, places), *_records(db, places)]
    numbered += [*_events(db, places), *_descriptions(db)]
    numbered += _vectors(db, places) if version >= 2 else ()
    check_stored(db, len(numbered))
    numbered.sort(key=itemgetter(0))
    return sorted((item for _, item in numbered), key=turn)


def check_stored(db: sqlite3.Connection, found: int) -> None:
    """Raise `MalformedError` if items are missing."""
    if db.execute("SELECT items FROM stored").fetchall() != [(found,)]:
        raise MalformedError(f"{found} items are not as many as were stored")


def read_places(db: sqlite3.Connection) -> Places:
    """What the numbers of places stand for."""
    return dict(_places(db))


def place_at(places: Places, number: object) -> tuple[Site, str]:
    """What one of them stands for."""
    found = places.get(number) if isinstance(number, int) else None
    if found is None:
        raise MalformedError(f"a row names the missing place {reprlib.repr(number)}")
    return found


def _places(db: sqlite3.Connection) -> Iterator[tuple[int, tuple[Site, str]]]:
    for number, *texts in db.execute("SELECT id, model, fqn, what FROM places"):
        model, fqn, what = map(_read_text, texts)
        yield number, (Site(model, fqn), what)


def _scalars(db: sqlite3.Connection, places: Places) -> Iterator[tuple[int, Item]]:
    for number, step, place, value in db.execute("SELECT id, step, place, value FROM scalars"):
        site, what = place_at(places, place)
        yield number, Scalar(integer(step), what, _real(value), site)


def _records(db: sqlite3.Connection, places: Places) -> Iterator[tuple[int, Item]]:
    columns = "id, step, place, count, mean, m2, min, max, nonfinite, sampled, zeros"
    for number, step, place, *values in db.execute(f"SELECT {columns} FROM records"):
        site, what = place_at(places, place)
        mean, m2, least, greatest = map(_real, values[1:5])
        count, nonfinite, sampled, zeros = map(_natural, (values[0], *values[5:]))
        stats = TensorStats(count, mean, m2, least, greatest, nonfinite, sampled, zeros)
        yield number, Record(integer(step), site, member(Point, what), stats)


def _vectors(db: sqlite3.Connection, places: Places) -> Iterator[tuple[int, Item]]:
    columns = "id, step, place, count, numbers"
    for number, step, place, count, numbers in db.execute(f"SELECT {columns} FROM vectors"):
        yield number, vector(places, step, place, count, numbers)


def _events(db: sqlite3.Connection, places: Places) -> Iterator[tuple[int, Item]]:
    for number, step, place, detail in db.execute("SELECT id, step, place, detail FROM events"):
        yield number, event(places, step, place, detail)


def _descriptions(db: sqlite3.Connection) -> Iterator[tuple[int, Item]]:
    for number, step, kind, facts in db.execute("SELECT id, step, kind, facts FROM descriptions"):
        yield number, description(step, kind, facts)


def vector(places: Places, step: object, place: object, count: object, numbers: object) -> Vector:
    """A row of `vectors`."""
    site, what = place_at(places, place)
    return Vector(integer(step), what, site, unpacked(count, numbers))


def event(places: Places, step: object, place: object, detail: object) -> Event:
    """A row of `events`."""
    site, what = place_at(places, place)
    return Event(integer(step), member(EventKind, what), site, OPTIONS.loads(detail))


def description(step: object, kind: object, facts: object) -> Description:
    """A row of `descriptions`."""
    if kind not in FACTS:
        raise MalformedError(f"there are no facts of the kind {kind!r}")
    assert isinstance(kind, str)
    return Description(integer(step), FACTS[kind].loads(facts))


def integer(value: object) -> int:
    """A value that must be a whole number."""
    if isinstance(value, int):
        return value
    raise MalformedError(f"expected an integer, found {reprlib.repr(value)}")


def _natural(value: object) -> int:
    if isinstance(value, int) and value >= 0:
        return value
    raise MalformedError(f"expected a count, found {reprlib.repr(value)}")


def _real(value: object) -> float:
    if isinstance(value, float):
        return value
    if value is None:
        return math.nan
    raise MalformedError(f"expected a number, found {reprlib.repr(value)}")


def _read_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode(errors="surrogatepass")
    raise MalformedError(f"expected a text, found {reprlib.repr(value)}")


def member(kind: type[E], value: str) -> E:
    """A value that must be one of an enumeration's."""
    try:
        return kind(value)
    except ValueError as error:
        raise MalformedError(str(error)) from error
