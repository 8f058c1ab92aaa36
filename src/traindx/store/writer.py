"""The sink that writes a run file while the run goes on."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from zlib import crc32

from traindx.errors import TraindxError
from traindx.findings import Verdict
from traindx.messages import Message, say
from traindx.records import Event, EventKind, Item
from traindx.store import schema
from traindx.store.nouns import VERDICT
from traindx.store.place import new_path
from traindx.store.recovery import journal_of
from traindx.store.waiting import Waiting

MAX_WAITING = 500_000
"""Items kept in memory (some 40 MB) while the file cannot be written; then steps are thinned."""

_SHARE, _LONGEST = 100, 10.0
"""Times as long as a commit took the next one is put off, and seconds for which it is at most."""

PATIENCE = 2000
"""Milliseconds for which `close` waits for a reader; `write` never waits."""


class CannotStoreError(TraindxError, OSError):
    """A run file cannot be created: the folder is read-only, the disk full, or the path taken."""


def open_writer(
    folder: Path, stem: str, now: datetime, *, warn: Callable[[str], None] | None = None
) -> Writer:
    """Start a new run file `STEM-TIME.traindx` in `folder`, which is made if it is missing.

    Raises:
        CannotStoreError: It cannot be created. Nothing is left behind.
    """
    try:
        path = new_path(folder, stem, now)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotStoreError(_cannot(folder, reason)) from error
    try:
        return Writer(path, warn=warn)
    except CannotStoreError:
        _remove(path)
        raise


def _remove(path: Path) -> None:
    for leftover in (path, journal_of(path)):
        with suppress(OSError):
            leftover.unlink()


class Writer:
    """Writes items and the verdict into a new run file.

    It commits at most once every `interval` seconds and at the end; more seldom where the disk is
    slow, so that commits take a hundredth of the time at most. What cannot be stored, because
    somebody reads the file or the disk is full, waits in memory for the next commit. A trouble
    other than a reader is told once through `warn`, and so is a file that stays incomplete; none is
    raised.

    Attributes:
        path: The file.
        lost: Items given up so far; after `close`, all that are not in the file.
        complete: After `close`, whether the file holds every item and the verdict.
        seconds: Time spent in commits.
    """

    def __init__(
        self,
        path: Path,
        *,
        interval: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        warn: Callable[[str], None] | None = None,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self.path = path
        self.lost = 0
        self.complete = False
        self.seconds = 0.0
        self._interval = interval
        self._clock = clock
        self._warn = warn or _print
        self._max_waiting = max_waiting
        self._waiting = Waiting()
        self._batch = 1
        self._verdict: str | None = None
        self._warned = self._closed = False
        self._pid = os.getpid()
        self._db = _create(path)
        self._committed = clock()
        self._took = 0.0

    def write(self, items: Sequence[Item]) -> None:
        """Take items; commit them if the last commit was long enough ago."""
        if not self._mine:
            return
        for item in items:
            self._waiting.add(item)
        overflowing = len(self._waiting) > self._max_waiting
        pause = self._interval and max(self._interval, min(_SHARE * self._took, _LONGEST))
        if overflowing or self._clock() - self._committed >= pause:
            self.commit()
        if len(self._waiting) > self._max_waiting:
            self._thin()

    def write_verdict(self, verdict: Verdict) -> None:
        """Store what the rules say at the next commit, in the place of what they said before."""
        self._verdict = VERDICT.dumps(verdict)

    def close(self) -> None:
        """Commit what is left; `complete` and `lost` then say how that went."""
        if not self._mine:
            return
        self._closed = True
        # Training is over: a reader is worth waiting for now.
        self._db.execute(f"PRAGMA busy_timeout = {PATIENCE}")
        committed = self.commit()
        self.lost += len(self._waiting)
        self.complete = committed and not self.lost
        if not self.complete:
            self._warn(
                say(
                    "The run file `{path}` is not complete: not all that was measured could be "
                    "stored. What is told here is of the whole run.",
                    path=self.path,
                )
            )
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA journal_mode = DELETE").fetchall()  # leave one file, not two
        self._db.close()

    def discard(self) -> None:
        """Remove the file: the run is not worth keeping."""
        if not self._mine:
            return
        self._closed = True
        self._db.close()
        _remove(self.path)

    @property
    def waiting(self) -> int:
        """Items in memory that are not in the file yet."""
        return len(self._waiting)

    @property
    def _mine(self) -> bool:
        # A forked DataLoader worker inherits this object, and must not touch the database.
        return not self._closed and os.getpid() == self._pid

    def commit(self) -> bool:
        """Store now what is waiting; say whether that went well."""
        began = self._committed = self._clock()
        if not self._waiting and self._verdict is None:
            return True
        before = self._db.total_changes
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._insert()
            self._db.execute("COMMIT")
            self._stored()
        except sqlite3.Error as error:
            self._roll_back()
            self._tell(error)
            return False
        except BaseException:  # of whoever presses Ctrl+C, and may go on
            if self._db.in_transaction or self._db.total_changes == before:
                self._roll_back()
            else:
                self._stored()
            raise
        finally:
            self._took = self._clock() - began
            self.seconds += self._took
        return True

    def _stored(self) -> None:
        self._waiting.stored()
        self._batch += 1
        self._verdict = None

    def _insert(self) -> None:
        for table, rows in self._waiting.tables(self._batch):
            self._db.executemany(schema.INSERTS[table], rows)
        self._db.execute("UPDATE stored SET items = items + ?", (len(self._waiting),))
        if self._verdict is not None:
            verdict = (self._verdict, crc32(self._verdict.encode()))
            self._db.execute("INSERT OR REPLACE INTO verdict VALUES (1, ?, ?)", verdict)

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _tell(self, error: sqlite3.Error) -> None:
        if self._warned or "locked" in str(error):
            return
        self._warned = True
        self._warn(
            say(
                "Cannot store the run in `{path}` for now: {error}. Training goes on, and what was "
                "measured is kept in memory and stored once that is possible.",
                path=self.path,
                error=error,
            )
        )

    def _thin(self) -> None:
        dropped = self._waiting.thin()
        self.lost += dropped
        text = say(
            "{dropped} items were dropped, as the run file could not be written for long.",
            dropped=dropped,
        )
        self._waiting.add(Event(self._waiting.last_step, EventKind.NOTE, detail={"text": text}))


def _create(path: Path) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise CannotStoreError(_cannot(path, error)) from error
    try:
        if db.execute("PRAGMA page_count").fetchone() != (0,):
            raise CannotStoreError(_cannot(path, say("it holds something already")))
        db.execute("PRAGMA journal_mode = TRUNCATE").fetchall()
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA cache_spill = OFF")  # nothing but a commit locks readers out
        schema.create(db)
    except sqlite3.Error as error:
        db.close()
        raise CannotStoreError(_cannot(path, error)) from error
    except CannotStoreError:
        db.close()
        raise
    return db


def _cannot(place: Path, reason: object) -> Message:
    return say("Cannot store the run in `{place}`: {reason}.", place=place, reason=reason)


def _print(text: str) -> None:
    print(f"traindx: {text}", file=sys.stderr)
