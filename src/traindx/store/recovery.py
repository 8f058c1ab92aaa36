"""Opening a run file for reading, in whatever state its writer left it.

A writer that is killed in a commit leaves a hot journal: the old pages, to be put back before
anybody reads. SQLite does so in place, which needs a writable folder and changes the original.
Here it is done in a temporary copy instead, so that a run file is only ever read.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

PATIENCE = 5.0
"""Seconds for which a reader waits while a live writer commits."""

_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


class ForeignJournalError(sqlite3.DatabaseError):
    """The journal was not left behind by a traindx writer."""


def journal_of(path: Path) -> Path:
    """Where SQLite keeps the journal of a database."""
    return path.with_name(path.name + "-journal")


def has_journal(path: Path) -> bool:
    """Whether a commit is under way, or was cut off; between commits the journal is empty."""
    journal = journal_of(path)
    return journal.is_file() and journal.stat().st_size > 0


@contextmanager
def opened(path: Path) -> Generator[sqlite3.Connection, None, None]:
    """A connection that shows one moment of the file and cannot change it.

    Raises:
        sqlite3.Error: It cannot be read.
        OSError: It cannot be copied.
    """
    with closing(_connect(path)) as db:
        try:
            _begin(db)
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or not has_journal(path):
                raise
        else:
            yield db
            return
    with TemporaryDirectory(prefix="traindx-") as folder:
        copy = _recovered(path, Path(folder))
        with closing(_connect(copy)) as db:
            _begin(db)
            yield db


def _connect(path: Path) -> sqlite3.Connection:
    uri = f"{path.as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)


def _begin(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    db.execute("BEGIN")
    db.execute("SELECT count(*) FROM sqlite_master").fetchall()  # takes the lock, meets the journal


def _recovered(path: Path, folder: Path) -> Path:
    copy = folder / "run.traindx"
    shutil.copyfile(path, copy)
    shutil.copyfile(journal_of(path), journal_of(copy))
    # A journal that ends so names a further file, which SQLite would go on to open and delete.
    if journal_of(copy).read_bytes().endswith(_JOURNAL_MAGIC):
        raise ForeignJournalError(f"{journal_of(path).name} is not from a run")
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        db.execute("SELECT count(*) FROM sqlite_master").fetchall()
    return copy
