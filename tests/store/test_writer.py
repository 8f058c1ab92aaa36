"""The writer commits once a second, waits for nobody, and never stops a training."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from traindx.errors import TraindxError
from traindx.findings import NotEvaluated, Verdict
from traindx.records import Event, EventKind, Point, Record, Scalar, Site, TensorStats
from traindx.store.reader import read
from traindx.store.writer import CannotStoreError, Writer, open_writer

NOON = datetime(2030, 1, 2, 12, 0, 5)
VERDICT = Verdict(evaluated=("N001",), not_evaluated=(NotEvaluated("G005", "needs preflight"),))


class Clock:
    """A clock that goes when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def losses(start: int, stop: int) -> list[Scalar]:
    return [Scalar(step, "loss", 1 / (step + 1)) for step in range(start, stop)]


@contextmanager
def somebody_reads(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM scalars").fetchone()
        yield


@contextmanager
def no_file_may_grow_beyond(size: int) -> Iterator[None]:
    """What a full disk does, without filling one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.traindx"


def test_it_commits_once_a_second_and_at_the_end(path: Path) -> None:
    clock = Clock()
    writer = Writer(path, clock=clock)
    writer.write(losses(0, 5))
    clock.now = 0.9
    writer.write(losses(5, 10))
    assert read(path) == ([], None)
    clock.now = 1.0
    writer.write(losses(10, 15))
    assert read(path)[0] == losses(0, 15)
    clock.now = 1.5
    writer.write(losses(15, 20))
    assert (writer.waiting, read(path)[0]) == (5, losses(0, 15))
    writer.close()
    assert read(path)[0] == losses(0, 20)
    assert (writer.complete, writer.lost) == (True, 0)


def test_a_finished_run_is_one_file(path: Path) -> None:
    writer = Writer(path)
    writer.write(losses(0, 5))
    writer.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_discarded_run_leaves_nothing_behind(path: Path) -> None:
    writer = Writer(path)
    writer.write(losses(0, 5))
    writer.commit()
    writer.discard()
    writer.write(losses(5, 9))
    writer.close()
    assert list(path.parent.iterdir()) == []


def test_a_later_verdict_takes_the_place_of_an_earlier_one(path: Path) -> None:
    writer = Writer(path, interval=0)
    writer.write_verdict(Verdict())
    writer.write(losses(0, 1))
    writer.write_verdict(VERDICT)
    writer.close()
    assert read(path) == (losses(0, 1), VERDICT)


def test_while_somebody_reads_rows_wait_and_are_stored_later(path: Path) -> None:
    told: list[str] = []
    writer = Writer(path, interval=0, warn=told.append)
    with somebody_reads(path):
        writer.write(losses(0, 5))
        writer.write(losses(5, 10))
        assert (writer.waiting, read(path)[0]) == (10, [])
    writer.write(losses(10, 15))
    assert (writer.waiting, read(path)[0]) == (0, losses(0, 15))
    writer.close()
    assert (writer.complete, told) == (True, [])


def test_it_does_not_wait_for_a_reader(path: Path) -> None:
    writer = Writer(path, interval=0)
    with somebody_reads(path):
        writer.write(losses(0, 1000))
        assert writer.seconds < 1.0  # SQLite's own patience would be 5 s
    writer.close()


def test_a_reader_that_outlasts_the_run_is_told_as_loss(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traindx.store.writer.PATIENCE", 10)
    told: list[str] = []
    writer = Writer(path, warn=told.append)
    writer.write(losses(0, 5))
    with somebody_reads(path):
        writer.close()
    assert (writer.complete, writer.lost) == (False, 5)
    assert [text.startswith(f"The run file `{path}` is not complete") for text in told] == [True]
    assert read(path)[0] == []


def test_a_full_disk_is_told_once_and_what_waited_is_stored_when_there_is_room(path: Path) -> None:
    told: list[str] = []
    writer = Writer(path, interval=0, warn=told.append)
    with no_file_may_grow_beyond(path.stat().st_size):
        for step in range(50):
            writer.write(losses(step * 100, (step + 1) * 100))
    assert writer.waiting > 4000  # the file had a little room left in its pages
    assert len(told) == 1
    assert told[0].startswith(f"Cannot store the run in `{path}` for now: ")
    writer.write(losses(5000, 5001))
    assert read(path)[0] == losses(0, 5001)
    writer.close()
    assert writer.complete


def test_a_disk_that_stays_full_leaves_what_fitted_and_says_so(path: Path) -> None:
    told: list[str] = []
    writer = Writer(path, interval=0, warn=told.append)
    writer.write(losses(0, 5))
    with no_file_may_grow_beyond(path.stat().st_size):
        writer.write(losses(5, 5000))
        writer.close()
    assert (writer.complete, writer.lost) == (False, 4995)
    assert [text.partition(" `")[0] for text in told] == ["Cannot store the run in", "The run file"]
    assert read(path)[0] == losses(0, 5)


def test_what_waits_too_long_is_thinned_step_by_step_and_measured_steps_last(path: Path) -> None:
    weight = Site("net", "weight")
    stats = TensorStats(4, 0.0, 1.0, -1.0, 1.0)
    measured = [Record(step, weight, Point.GRAD, stats) for step in range(0, 100, 10)]
    marks = [Event(record.step, EventKind.MEASURED) for record in measured]
    writer = Writer(path, interval=0, max_waiting=100)
    with somebody_reads(path):
        for loss in losses(0, 100):
            writer.write([loss, *(i for i in (*measured, *marks) if i.step == loss.step)])
            assert writer.waiting <= 101
    writer.close()
    found, _ = read(path)
    assert [item for item in found if isinstance(item, Record)] == measured
    assert [item for item in found if item in marks] == marks
    kept = [item.step for item in found if isinstance(item, Scalar)]
    assert {record.step for record in measured} <= set(kept)
    assert writer.lost == 100 - len(kept) > 0
    assert not writer.complete
    notes = [item for item in found if isinstance(item, Event) and item.kind is EventKind.NOTE]
    assert [note.detail["text"] for note in notes] == [
        f"{writer.lost} items were dropped, as the run file could not be written for long."
    ]


def test_steps_that_are_all_measured_are_thinned_whole(path: Path) -> None:
    stats = TensorStats(4, 0.0, 1.0, -1.0, 1.0)
    writer = Writer(path, interval=0, max_waiting=90)
    with somebody_reads(path):
        for step in range(200):
            record = Record(step, Site("net", "w"), Point.GRAD, stats)
            writer.write([record, Scalar(step, "loss", 0.0), Event(step, EventKind.MEASURED)])
            assert writer.waiting <= 91
    writer.close()
    found, _ = read(path)
    steps = [[i.step for i in found if isinstance(i, kind)] for kind in (Record, Scalar)]
    marks = [i.step for i in found if isinstance(i, Event) and i.kind is EventKind.MEASURED]
    assert steps == [marks, marks]
    assert 0 in marks
    assert 199 in marks


FORKS = """
import os, sys
from pathlib import Path
from traindx.records import Scalar
from traindx.store.writer import Writer

writer = Writer(Path(sys.argv[1]), interval=0)
writer.write([Scalar(0, "loss", 1.0)])
child = os.fork()
writer.write([Scalar(1 if child else 666, "loss", 1.0)])
writer.close()
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""


def test_a_forked_child_leaves_the_file_alone(path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKS, path], check=True)
    assert read(path)[0] == [Scalar(0, "loss", 1.0), Scalar(1, "loss", 1.0)]


def test_names_are_data_and_never_sql(path: Path) -> None:
    site = Site("x'); DROP TABLE scalars; --", '"; PRAGMA user_version = 9; \0\x1b[2J')
    writer = Writer(path)
    writer.write([Scalar(0, "loss", 1.0, site)])
    writer.close()
    assert read(path)[0] == [Scalar(0, "loss", 1.0, site)]


def test_an_existing_file_is_never_overwritten(path: Path) -> None:
    Writer(path).close()
    before = path.read_bytes()
    with pytest.raises(CannotStoreError, match="it holds something already"):
        Writer(path)
    path.with_name("notes.txt").write_text("my notes" * 100)
    with pytest.raises(CannotStoreError, match="file is not a database"):
        Writer(path.with_name("notes.txt"))
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_one_error_for_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotStoreError, match=r"Cannot store the run in `.*runs`: ") as caught:
        open_writer(tmp_path / "file" / "runs", "train", NOON)
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, TraindxError)


def test_a_disk_full_from_the_start_leaves_no_empty_file_behind(tmp_path: Path) -> None:
    with no_file_may_grow_beyond(0), pytest.raises(CannotStoreError):
        open_writer(tmp_path, "train", NOON)
    assert [*tmp_path.iterdir()] == []


def test_open_writer_starts_a_new_file(tmp_path: Path) -> None:
    writer = open_writer(tmp_path, "train", NOON)
    assert writer.path.name == "train-20300102-120005.traindx"
    assert read(writer.path) == ([], None)
    writer.close()
