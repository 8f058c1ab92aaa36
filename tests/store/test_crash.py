"""A writer killed at any moment leaves a file that opens, and loses no more than it may."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest

from traindx.errors import BadRunFileError
from traindx.findings import Verdict
from traindx.records import Event, EventKind, Item, Scalar
from traindx.store.reader import read
from traindx.store.recovery import journal_of
from traindx.store.writer import Writer

Moment = tuple[list[Item], Verdict | None]
KILLED_IN_A_TRANSACTION = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode = TRUNCATE")
db.execute("PRAGMA cache_size = 2")  # pages are written to the file before the commit
db.execute("BEGIN IMMEDIATE")
rows = ((1000 + i, 1000, 0, 3001 + i, b"", b"", b"0" * 40) for i in range(20_000))
db.executemany("INSERT INTO scalars VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
db.execute("UPDATE stored SET items = items + 20000")
os.kill(os.getpid(), signal.SIGKILL)
"""


def load_benchmark() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "store.py"
    spec = importlib.util.spec_from_file_location("benchmarks_store", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


benchmark = load_benchmark()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that an ordinary user may enter, which pytest's own is not."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def items(start: int, stop: int) -> list[Item]:
    return [Scalar(step, "loss", 1 / (step + 1)) for step in range(start, stop)]


def with_hot_journal(folder: Path) -> tuple[Path, list[Item]]:
    path = folder / "run.traindx"
    stored = items(0, 3000)
    writer = Writer(path, interval=0)
    for start in range(0, 3000, 10):  # a row each, so that the table has several pages
        writer.write(stored[start : start + 10])
    writer.close()
    before = path.read_bytes()
    killed = subprocess.run([sys.executable, "-c", KILLED_IN_A_TRANSACTION, path], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes() != before
    return path, stored


def check_kills(count: int, seed: int, interval: float) -> None:
    for kill in benchmark.kills(count, seed, interval):
        assert kill.in_place
        assert kill.read_only
        assert kill.lost_committed == 0
        assert kill.copy in ("opened", "named")
        # One interval and the commit after it, on a machine that has other things to do.
        assert kill.age <= interval + 1.0


def test_a_run_killed_at_random_times_opens_and_holds_what_was_committed() -> None:
    check_kills(5, seed=1, interval=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("interval", [0.0, 1.0])
def test_a_run_killed_at_twenty_random_times_loses_at_most_the_last_second(interval: float) -> None:
    check_kills(20, seed=2, interval=interval)


def test_a_commit_cut_off_is_undone_in_a_copy_and_the_original_stays(folder: Path) -> None:
    path, stored = with_hot_journal(folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert read(path)[0] == stored
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    link = folder.parent / f"{folder.name}-link"
    link.symlink_to(path)
    try:
        assert read(link)[0] == stored
    finally:
        link.unlink()


def test_a_commit_cut_off_is_undone_from_a_read_only_folder(folder: Path) -> None:
    path, stored = with_hot_journal(folder)
    with benchmark.read_only(folder):
        with pytest.raises(PermissionError):
            (folder / "new").touch()
        assert read(path)[0] == stored


def test_a_sound_file_opens_from_a_read_only_folder(folder: Path) -> None:
    writer = Writer(folder / "run.traindx")
    writer.write(items(0, 10))
    writer.close()
    with benchmark.read_only(folder):
        assert read(folder / "run.traindx")[0] == items(0, 10)


def test_a_copy_without_its_journal_names_it(folder: Path, tmp_path: Path) -> None:
    path, _ = with_hot_journal(folder)
    copy = Path(shutil.copy(path, tmp_path))
    with pytest.raises(BadRunFileError, match=r"copy `run\.traindx-journal` from beside"):
        read(copy)


def test_a_journal_that_names_a_further_file_is_not_followed(folder: Path) -> None:
    """SQLite deletes the file that such a journal names, once it is rolled back."""
    path, _ = with_hot_journal(folder)
    victim = folder / "thesis.tex"
    victim.write_text("years of work")
    name = str(victim).encode()
    page_number, magic = b"\xff\xff\xff\xff", bytes.fromhex("d9d505f920a163d7")
    tail = len(name).to_bytes(4, "big") + (sum(name) % 2**32).to_bytes(4, "big") + magic
    with journal_of(path).open("ab") as journal:
        journal.write(page_number + name + tail)
    with pytest.raises(BadRunFileError, match="is not from a run"):
        read(path)
    assert victim.read_text() == "years of work"


def verdict(name: str, codes: int) -> Verdict:
    """Of the same length for names of the same length, so that half of each is sound JSON."""
    return Verdict(evaluated=tuple(f"{name}{i:05}" for i in range(codes)))


@pytest.mark.parametrize("codes", [1, 600, 20_000])
@pytest.mark.parametrize("size", [1, 700])
def test_a_copy_torn_between_any_two_pages_is_whole_or_names_the_journal(
    tmp_path: Path, size: int, codes: int
) -> None:
    """SQLite writes a commit's pages in the order of their numbers; each prefix is a kill."""
    path = tmp_path / "run.traindx"
    writer = Writer(path, interval=0)
    moments: dict[str, Moment] = {}
    contents: list[bytes] = []
    writes = [("one", benchmark.items_of(0)), ("two", []), ("old", []), ("new", items(1, size))]
    for name, added in writes:  # from the third on, verdicts are written over older ones
        writer.write_verdict(verdict(name, codes))
        writer.write([*added, Event(size, EventKind.MEASURED)])
        contents.append(path.read_bytes())
        moments[name] = read(path)
    writer.close()
    outcomes = [_outcome(path, torn, moments) for torn in _torn(*contents[-2:])]
    assert (outcomes[0], outcomes[-1]) == ("old", "new")
    assert set(outcomes) == {"old", "named", "new"}


def _torn(before: bytes, after: bytes) -> Iterator[bytes]:
    page = 4096
    torn = bytearray(before)
    yield bytes(torn)
    for start in range(0, len(after), page):
        if after[start : start + page] != torn[start : start + page]:
            torn[start : start + page] = after[start : start + page]
            yield bytes(torn)


def _outcome(path: Path, content: bytes, moments: dict[str, Moment]) -> str:
    path.write_bytes(content)
    try:
        found = read(path)
    except BadRunFileError as error:
        return "named" if journal_of(path).name in str(error) else str(error)
    return next((name for name, held in moments.items() if held == found), "torn")


def test_a_run_killed_before_its_first_commit_is_empty_and_says_so(folder: Path) -> None:
    path = folder / "run.traindx"
    with closing(sqlite3.connect(path)):
        path.touch()
    journal_of(path).write_bytes(b"\0" * 512)
    with pytest.raises(BadRunFileError, match="ended before anything was stored"):
        read(path)
