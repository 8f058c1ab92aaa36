"""Files of the first two schemas, which had a row an item, are read as they always were."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from traindx.errors import BadRunFileError
from traindx.findings import NotEvaluated, Verdict
from traindx.records import Event, EventKind, Point, Record, Scalar, Site, TensorStats, Vector
from traindx.run import Run
from traindx.store.reader import read

SCHEMA_1 = """
PRAGMA application_id = 1953653880;
PRAGMA user_version = 1;
CREATE TABLE places (
  id INTEGER PRIMARY KEY,
  model TEXT NOT NULL,
  fqn TEXT NOT NULL,
  what TEXT NOT NULL
);
CREATE TABLE scalars (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  place INTEGER NOT NULL,
  value REAL -- NULL is NaN, here and below
);
CREATE TABLE records (
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
);
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  place INTEGER NOT NULL,
  detail TEXT NOT NULL -- JSON
);
CREATE TABLE descriptions (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  kind TEXT NOT NULL, -- model, optimizer or loss
  facts TEXT NOT NULL -- JSON
);
CREATE TABLE verdict (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  verdict TEXT NOT NULL, -- JSON
  crc32 INTEGER NOT NULL -- of the text: the only row that is ever rewritten may be torn
);
CREATE TABLE stored (
  items INTEGER NOT NULL
);
INSERT INTO places VALUES (1, '', '', 'started'), (2, 'net', '', 'loss'), (3, 'net', 'w', 'grad'),
  (4, '', '', 'measured');
INSERT INTO events VALUES (1, -1, 1, '{"id":"r1"}'), (4, 0, 4, '{}');
INSERT INTO records VALUES (2, 0, 3, 9, 0.5, 2.0, -1.0, 3.0, 0, 0, 0);
INSERT INTO scalars VALUES (3, 0, 2, 0.25);
INSERT INTO verdict VALUES (1,
  '{"findings":[],"evaluated":[],"not_evaluated":[{"code":"G005","reason":"needs preflight"}]}',
  1091888123);
INSERT INTO stored VALUES (4);
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "old.traindx"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA_1)
    return path


def test_a_file_of_the_first_schema_is_read(path: Path) -> None:
    assert read(path) == (
        [
            Event(-1, EventKind.STARTED, detail={"id": "r1"}),
            Record(0, Site("net", "w"), Point.GRAD, TensorStats(9, 0.5, 2.0, -1.0, 3.0)),
            Scalar(0, "loss", 0.25, Site("net")),
            Event(0, EventKind.MEASURED),
        ],
        Verdict(not_evaluated=(NotEvaluated("G005", "needs preflight"),)),
    )


SCHEMA_2 = """
PRAGMA user_version = 2;
CREATE TABLE vectors (
  id INTEGER PRIMARY KEY,
  step INTEGER NOT NULL,
  place INTEGER NOT NULL,
  count INTEGER NOT NULL,
  numbers BLOB NOT NULL -- little-endian, of 4 or 8 bytes each
);
INSERT INTO places VALUES (5, 'net', 'bn', 'norm.batch_mean');
INSERT INTO vectors VALUES (5, 0, 5, 2, x'0000003f0000803f');
UPDATE stored SET items = 5;
"""


def test_a_file_of_the_second_schema_is_read(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA_2)
    items, _ = read(path)
    assert items[-1] == Event(0, EventKind.MEASURED)
    assert Vector(0, "norm.batch_mean", Site("net", "bn"), (0.5, 1.0)) in items
    run = Run.load(path)
    assert (run.header, run.measured_steps, run.step) == ({"id": "r1"}, 1, 0)
    assert [list(series) for series in run.series("grad.max")] == [[(0, 3.0)]]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE scalars SET value = 'high'", "expected a number, found 'high'"),
        ("UPDATE scalars SET step = 1.5", "expected an integer, found 1.5"),
        ("UPDATE scalars SET place = 999", "a row names the missing place 999"),
        ("UPDATE records SET count = -1", "expected a count, found -1"),
        ("DELETE FROM scalars", "not as many as were stored"),
    ],
)
def test_damage_of_an_old_file_is_told(path: Path, statement: str, reason: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(statement)
    with pytest.raises(BadRunFileError, match=reason):
        read(path)


def test_a_table_of_somebody_elses_is_not_taken_for_vectors(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE vectors (x); INSERT INTO vectors VALUES (1)")
    assert len(read(path)[0]) == 4


def test_a_file_that_only_says_it_is_of_the_second_schema_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA user_version = 2")
    with pytest.raises(BadRunFileError, match="its tables are not those of schema 2"):
        read(path)


@pytest.mark.parametrize("version", [0, -1])
def test_there_are_no_earlier_schemas(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"PRAGMA user_version = {version}")
    with pytest.raises(BadRunFileError, match="run file schema"):
        read(path)
