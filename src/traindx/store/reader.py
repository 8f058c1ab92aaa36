"""Reads a run file back, or says in one message why it is none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from traindx import __version__
from traindx.errors import BadRunFileError
from traindx.findings import Verdict
from traindx.messages import Message, listed, say
from traindx.records import Item
from traindx.store import schema
from traindx.store.codec import MalformedError
from traindx.store.nouns import VERDICT
from traindx.store.place import FOLDER, run_files
from traindx.store.recovery import has_journal, journal_of, opened
from traindx.store.rows import read_items
from traindx.store.stretch import Stretch, of_items, turn
from traindx.store.stretches import read_stretches

MAX_CHECKED_BYTES = 2**29
"""Larger files are not read twice: their damage shows when the rows are read."""

_HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\0"
_KNOWN_STARTS = {
    b"PK\3\4": say("a ZIP archive, as torch.save writes"),
    b"\x80\2": say("a pickle"),
    b"\x80\3": say("a pickle"),
    b"\x80\4": say("a pickle"),
    b"\x80\5": say("a pickle"),
    b"\x1f\x8b": say("gzip data"),
    b"\x89HDF": say("an HDF5 file"),
}


class Stored:
    """A run file, which is read while one goes through its stretches.

    The file may still be growing, or its writer may have been killed; it is not changed.

    Attributes:
        path: The file.
        verdict: What was said of the run, known once reading has begun; None if nothing was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.verdict: Verdict | None = None

    def __iter__(self) -> Iterator[Stretch]:
        """The run, stretch by stretch.

        Raises:
            BadRunFileError: It is missing, damaged, foreign, or of an unknown schema.
        """
        path = self.path
        try:
            file = path.resolve()  # the journal lies beside the file itself, not a link to it
            _check_header(path, file)
            with opened(file) as db:
                version = _schema(path, db)
                _check_pages(file, db)
                self.verdict = _verdict(db)
                yield from _stretches(db, version)
        except BadRunFileError:
            raise
        except (sqlite3.Error, MalformedError) as error:
            raise BadRunFileError(_refusal(path, error)) from error
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BadRunFileError(
                say("Cannot read `{path}`: {reason}.", path=path, reason=reason)
            ) from error


def _stretches(db: sqlite3.Connection, version: int) -> Iterator[Stretch]:
    if version >= 3:
        yield from read_stretches(db)
    else:
        yield of_items(read_items(db, version))


def read(path: Path) -> tuple[list[Item], Verdict | None]:
    """The items of a run in the order in which a rule engine takes them, and what was said of it.

    Raises:
        BadRunFileError: It is missing, damaged, foreign, or of an unknown schema.
    """
    stored = Stored(path)
    items = [item for stretch in stored for item in stretch.items()]
    return sorted(items, key=turn), stored.verdict


# -- before SQLite opens it ----------------------------------------------------------------------


def _check_header(path: Path, file: Path) -> None:
    if not file.exists():
        raise BadRunFileError(
            say("There is no run file `{path}`. {hint}", path=path, hint=_nearby(FOLDER))
        )
    if file.is_dir():
        raise BadRunFileError(
            say("`{path}` is a folder, not a run file. {hint}", path=path, hint=_nearby(path))
        )
    if not file.is_file():
        raise BadRunFileError(say("`{path}` is a device or a pipe, not a run file.", path=path))
    with file.open("rb") as stream:
        header = stream.read(_HEADER_BYTES)
    if not header:
        raise BadRunFileError(_empty(path))
    if not header.startswith(_MAGIC[: len(header)]):
        raise BadRunFileError(
            say("`{path}` is not a run file but {kind}.", path=path, kind=_kind(header))
        )
    if len(header) < _HEADER_BYTES:
        raise BadRunFileError(_damaged(path, f"it ends after {len(header)} bytes"))
    _check_identity(path, header)
    _check_size(path, file, header)


def _kind(header: bytes) -> Message:
    for start, kind in _KNOWN_STARTS.items():
        if header.startswith(start):
            return kind
    text = all(b >= 32 or b in b"\t\n\r\f" for b in header)
    return say("a text") if text else say("something else")


def _check_identity(path: Path, header: bytes) -> None:
    if _int32(header, 68) != schema.APPLICATION_ID:
        raise BadRunFileError(
            say("`{path}` is an SQLite database of another program, not a run file.", path=path)
        )
    version = _int32(header, 60)
    if version > schema.SCHEMA:
        raise BadRunFileError(
            say(
                "`{path}` has run file schema {version}, and traindx {traindx} reads up to "
                "{newest}. Update it: `pip install --upgrade traindx`.",
                path=path,
                version=version,
                traindx=__version__,
                newest=schema.SCHEMA,
            )
        )
    if version < 1:
        raise BadRunFileError(_damaged(path, f"there is no run file schema {version}"))
    if header[18:20] != b"\1\1":
        raise BadRunFileError(
            say(
                "`{path}` was switched to another journal mode than traindx writes. Switch it "
                "back: `sqlite3 {path} 'PRAGMA journal_mode = DELETE'`.",
                path=path,
            )
        )


def _check_size(path: Path, file: Path, header: bytes) -> None:
    """The header counts the pages; a file in the middle of a commit may have fewer."""
    size_is_valid = header[24:28] == header[92:96]
    if has_journal(file) or not size_is_valid:
        return
    page = _int16(header, 16)
    expected = (2**16 if page == 1 else page) * _int32(header, 28)
    size = file.stat().st_size  # after the journal: a commit that ended in between is whole
    if size < expected:
        raise BadRunFileError(_damaged(path, f"it has {size:,} of {expected:,} bytes"))


def _int32(header: bytes, offset: int) -> int:
    return int.from_bytes(header[offset : offset + 4], "big")


def _int16(header: bytes, offset: int) -> int:
    return int.from_bytes(header[offset : offset + 2], "big")


# -- once it is open -----------------------------------------------------------------------------


def _schema(path: Path, db: sqlite3.Connection) -> int:
    """The schema of the file, whose tables are just those."""
    if db.execute("PRAGMA page_count").fetchone() == (0,):  # its first commit was rolled back
        raise BadRunFileError(_empty(path))
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if not schema.has_tables(db, version):
        raise MalformedError(f"its tables are not those of schema {version}")
    return version


def _check_pages(file: Path, db: sqlite3.Connection) -> None:
    if file.stat().st_size > MAX_CHECKED_BYTES:
        return
    problem = db.execute("PRAGMA quick_check(1)").fetchone()
    if problem != ("ok",):
        raise MalformedError(problem[0] if problem else "its pages cannot be checked")


def _verdict(db: sqlite3.Connection) -> Verdict | None:
    found = db.execute("SELECT verdict, crc32 FROM verdict").fetchone()
    if found is None:
        return None
    verdict = VERDICT.loads(found[0])
    if crc32(found[0].encode()) != found[1]:
        raise MalformedError("its verdict is half an old and half a new one")
    return verdict


# -- messages ------------------------------------------------------------------------------------


def _empty(path: Path) -> Message:
    return say("`{path}` is empty: its run ended before anything was stored.", path=path)


def _refusal(path: Path, error: Exception) -> Message:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return say("`{path}` is locked by another program; try again once that is done.", path=path)
    return _damaged(path, str(error))


def _damaged(path: Path, what: str) -> Message:
    """The file is damaged; in what way is told in English alone, as SQLite does."""
    # SQLite quotes what it cannot read, which may be anything.
    plain = "".join(c if c.isprintable() else "?" for c in " ".join(what.split()))
    message = say("`{path}` is damaged: {what}.", path=path, what=plain[:200])
    if has_journal(path.resolve()):
        return message
    return say(
        "{message} If it is a copy, copy `{journal}` from beside the original too, where there is "
        "one: it undoes a commit that was cut off.",
        message=message,
        journal=journal_of(path).name,
    )


def _nearby(folder: Path) -> Message:
    found = run_files(folder)[:5]
    if not found:
        return say("`traindx run SCRIPT` makes one.")
    return say("Here are some: {files}.", files=listed(f"`{path}`" for path in found))
