"""What is in a run file: its tables, and how a file is known to be one. See docs/run-file.md."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

SCHEMA = 4
"""Stored as `user_version`; raised whenever a reader of the old one could misread a new file."""

APPLICATION_ID = 0x74726478  # "trdx"

PLACES = """CREATE TABLE places (
  id INTEGER PRIMARY KEY,
  model TEXT NOT NULL,
  fqn TEXT NOT NULL,
  what TEXT NOT NULL
)"""
VERDICT = """CREATE TABLE verdict (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  verdict TEXT NOT NULL, -- JSON
  crc32 INTEGER NOT NULL -- of the text: the only row that is ever rewritten may be torn
)"""
STORED = """CREATE TABLE stored (
  items INTEGER NOT NULL
)"""

TABLES = {
    # What is measured where: a scalar's quantity, a record's point or an event's kind at a site.
    "places": PLACES,
    # A row of these two holds many items, a BLOB each column of them; docs/run-file.md says how.
    # `batch` counts the commits of the run, here and below.
    "scalars": """CREATE TABLE scalars (
  id INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  count INTEGER NOT NULL,
  first_step INTEGER NOT NULL,
  steps BLOB NOT NULL, -- counted from first_step
  places BLOB NOT NULL,
  "values" BLOB NOT NULL
)""",
    "records": """CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  count INTEGER NOT NULL,
  first_step INTEGER NOT NULL,
  steps BLOB NOT NULL,
  places BLOB NOT NULL,
  counts BLOB NOT NULL,
  mean BLOB NOT NULL,
  m2 BLOB NOT NULL,
  min BLOB NOT NULL,
  max BLOB NOT NULL,
  nonfinite BLOB NOT NULL,
  sampled BLOB NOT NULL,
  zeros BLOB NOT NULL
)""",
    "vectors": """CREATE TABLE vectors (
  id INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  step INTEGER NOT NULL,
  place INTEGER NOT NULL,
  count INTEGER NOT NULL,
  numbers BLOB NOT NULL
)""",
    "events": """CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  step INTEGER NOT NULL,
  place INTEGER NOT NULL,
  detail TEXT NOT NULL -- JSON
)""",
    "descriptions": """CREATE TABLE descriptions (
  id INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  step INTEGER NOT NULL,
  kind TEXT NOT NULL, -- model, optimizer or loss
  facts TEXT NOT NULL -- JSON
)""",
    "verdict": VERDICT,
    # Items of the five tables of items. A commit cut off half way may leave sound tables that miss
    # some of its rows; then this number is wrong.
    "stored": STORED,
}

_TABLES_1 = {
    "places": PLACES,
    "scalars": """CREATE TABLE scalars (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  place INTEGER NOT NULL,
  value REAL -- NULL is NaN, here and below
)""",
    "records": """CREATE TABLE records (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  place INTEGER NOT NULL,
  count INTEGER NOT NULL,
  mean REAL,
  m2 REAL,
  min REAL,
  max REAL,
  nonfinite INTEGER NOT NULL,
  sampled INTEGER NOT NULL,
  zeros INTEGER NOT NULL
)""",
    "events": """CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  place INTEGER NOT NULL,
  detail TEXT NOT NULL -- JSON
)""",
    "descriptions": """CREATE TABLE descriptions (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  kind TEXT NOT NULL, -- model, optimizer or loss
  facts TEXT NOT NULL -- JSON
)""",
    "verdict": VERDICT,
    "stored": STORED,
}
_VECTORS_2 = """CREATE TABLE vectors (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  place INTEGER NOT NULL,
  count INTEGER NOT NULL,
  numbers BLOB NOT NULL -- little-endian, of 4 or 8 bytes each
)"""

_OF_SCHEMA: dict[int, Mapping[str, str]] = {
    1: _TABLES_1,
    2: {**_TABLES_1, "vectors": _VECTORS_2},
    3: TABLES,
    4: TABLES,  # what is new are kinds of events: those of probes
}

_COLUMNS = {"places": 4, "scalars": 7, "records": 14, "vectors": 6, "events": 5, "descriptions": 5}

INSERTS = {
    table: f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})"
    for table, columns in _COLUMNS.items()
}


def create(db: sqlite3.Connection) -> None:
    """Make an empty database a run file, in one transaction."""
    db.execute("BEGIN IMMEDIATE")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA}")
    for statement in TABLES.values():
        db.execute(statement)
    db.execute("INSERT INTO stored VALUES (0)")
    db.execute("COMMIT")


def has_tables(db: sqlite3.Connection, version: int) -> bool:
    """Whether each table of a schema is exactly the one above, and not a view that never ends."""
    found = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    expected = _OF_SCHEMA.get(version)
    return expected is not None and {*expected.items()} <= {*found}
