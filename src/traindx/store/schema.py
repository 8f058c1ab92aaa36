"""What is in a run file: its tables, and how a file is known to be one. See docs/run-file.md."""

from __future__ import annotations

import sqlite3

SCHEMA = 2
"""Stored as `user_version`; raised whenever a reader of the old one could misread a new file."""

ADDED = {"vectors": 2}
"""Tables that files of an earlier schema lack, by the schema that brought them."""

APPLICATION_ID = 0x74726478  # "trdx"

TABLES = {
    # What is measured where: a scalar's quantity, a record's point or an event's kind at a site.
    "places": """CREATE TABLE places (
  id INTEGER PRIMARY KEY,
  model TEXT NOT NULL,
  fqn TEXT NOT NULL,
  what TEXT NOT NULL
)""",
    # In these five, ids count the items of the whole run in the order they were written.
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
    "vectors": """CREATE TABLE vectors (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  place INTEGER NOT NULL,
  count INTEGER NOT NULL,
  numbers BLOB NOT NULL -- little-endian, of 4 or 8 bytes each
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
    "verdict": """CREATE TABLE verdict (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  verdict TEXT NOT NULL, -- JSON
  crc32 INTEGER NOT NULL -- of the text: the only row that is ever rewritten may be torn
)""",
    # Rows of the five tables of items. A commit cut off half way may leave sound tables that miss
    # some of its rows; then this number is wrong.
    "stored": """CREATE TABLE stored (
  items INTEGER NOT NULL
)""",
}


INSERTS = {
    "places": "INSERT INTO places VALUES (?, ?, ?, ?)",
    "scalars": "INSERT INTO scalars VALUES (?, ?, ?, ?)",
    "records": "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "vectors": "INSERT INTO vectors VALUES (?, ?, ?, ?, ?)",
    "events": "INSERT INTO events VALUES (?, ?, ?, ?)",
    "descriptions": "INSERT INTO descriptions VALUES (?, ?, ?, ?)",
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
    return {pair for pair in TABLES.items() if ADDED.get(pair[0], 1) <= version} <= {*found}
