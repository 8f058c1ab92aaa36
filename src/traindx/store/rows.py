"""The items of a run file, from its rows."""

from __future__ import annotations

import math
import reprlib
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
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
from traindx.store.schema import ADDED

Places = dict[int, tuple[Site, str]]
E = TypeVar("E", Point, EventKind)


def read_items(db: sqlite3.Connection, version: int) -> list[Item]:
    """All items of a file of this schema, in the order in which a rule engine takes them.

    Raises:
        MalformedError: A value is not of its column's type, or a row is missing.
    """
    places = dict(_places(db))
    try:
        numbered = [*_scalars(db, places), *_records(db, places)]
        numbered += [*_events(db, places), *_descriptions(db)]
        numbered += _vectors(db, places) if version >= ADDED["vectors"] else ()
    except KeyError as error:
        raise MalformedError(f"a row names the missing place {error}") from error
    if db.execute("SELECT items FROM stored").fetchall() != [(len(numbered),)]:
        raise MalformedError(f"{len(numbered)} items are not as many as were stored")
    numbered.sort(key=itemgetter(0))
    found = [item for _, item in numbered]
    del numbered  # of millions of items it takes as much memory as a sort by turns would
    if any(after < before for before, after in pairwise(map(_turn, found))):
        found.sort(key=_turn)  # the writer was not given its items in order
    return found


def _turn(item: Item) -> tuple[int, int, bool]:
    """A run starts first and ends last, and a step is measured once everything of it is there."""
    kind = item.kind if isinstance(item, Event) else None
    part = -1 if kind is EventKind.STARTED else 1 if kind is EventKind.ENDED else 0
    return part, item.step, kind is EventKind.MEASURED


def _places(db: sqlite3.Connection) -> Iterator[tuple[int, tuple[Site, str]]]:
    for number, *texts in db.execute("SELECT id, model, fqn, what FROM places"):
        model, fqn, what = map(_read_text, texts)
        yield number, (Site(model, fqn), what)


def _scalars(db: sqlite3.Connection, places: Places) -> Iterator[tuple[int, Item]]:
    for number, step, place, value in db.execute("SELECT id, step, place, value FROM scalars"):
        site, what = places[place]
        yield number, Scalar(_integer(step), what, _real(value), site)


def _records(db: sqlite3.Connection, places: Places) -> Iterator[tuple[int, Item]]:
    columns = "id, step, place, count, mean, m2, min, max, nonfinite, sampled, zeros"
    for number, step, place, *values in db.execute(f"SELECT {columns} FROM records"):
        site, what = places[place]
        mean, m2, least, greatest = map(_real, values[1:5])
        count, nonfinite, sampled, zeros = map(_natural, (values[0], *values[5:]))
        stats = TensorStats(count, mean, m2, least, greatest, nonfinite, sampled, zeros)
        yield number, Record(_integer(step), site, _member(Point, what), stats)


def _vectors(db: sqlite3.Connection, places: Places) -> Iterator[tuple[int, Item]]:
    columns = "id, step, place, count, numbers"
    for number, step, place, count, numbers in db.execute(f"SELECT {columns} FROM vectors"):
        site, what = places[place]
        yield number, Vector(_integer(step), what, site, unpacked(count, numbers))


def _events(db: sqlite3.Connection, places: Places) -> Iterator[tuple[int, Item]]:
    for number, step, place, detail in db.execute("SELECT id, step, place, detail FROM events"):
        site, what = places[place]
        yield number, Event(_integer(step), _member(EventKind, what), site, OPTIONS.loads(detail))


def _descriptions(db: sqlite3.Connection) -> Iterator[tuple[int, Item]]:
    for number, step, kind, facts in db.execute("SELECT id, step, kind, facts FROM descriptions"):
        if kind not in FACTS:
            raise MalformedError(f"there are no facts of the kind {kind!r}")
        yield number, Description(_integer(step), FACTS[kind].loads(facts))


def _integer(value: object) -> int:
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


def _member(kind: type[E], value: str) -> E:
    try:
        return kind(value)
    except ValueError as error:
        raise MalformedError(str(error)) from error
