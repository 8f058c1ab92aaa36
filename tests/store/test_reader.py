"""Whatever lies at a path, reading it gives a run or one message."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from traindx.errors import BadRunFileError
from traindx.facts import ModelFacts, OptimizerFacts
from traindx.records import (
    Description,
    Event,
    EventKind,
    Point,
    Record,
    Scalar,
    Site,
    TensorStats,
    Vector,
)
from traindx.run import Run
from traindx.store.reader import read
from traindx.store.writer import Writer

ITEMS = [
    Event(0, EventKind.STARTED, detail={"id": "r1"}),
    Description(0, ModelFacts("net", "Net", (), ())),
    Description(0, OptimizerFacts("SGD", "SGD", ({"lr": 0.1},), 2)),
    *(
        item
        for step in range(400)
        for item in (
            Scalar(step, "loss", 1 / (step + 1), Site("net")),
            Record(step, Site("net", "w"), Point.GRAD, TensorStats(9, 0.5, 2.0, -1.0, 3.0)),
            Vector(step, "norm.batch_mean", Site("net", "bn"), (0.5, step / 7)),
            Event(step, EventKind.MEASURED),
        )
    ),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run.traindx"
    writer = Writer(path)
    writer.write(ITEMS)
    writer.close()
    return path


def edit(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def message(path: Path) -> str:
    with pytest.raises(BadRunFileError) as caught:
        read(path)
    assert caught.value.exit_code == 2
    text = str(caught.value)
    assert text.isprintable()
    assert str(path) in text
    return text


def test_a_sound_file_gives_a_run(path: Path) -> None:
    run = Run.load(path)
    assert (run.path, run.header["id"], run.measured_steps) == (path, "r1", 400)
    assert read(path)[0] == ITEMS


# -- what is no run file -------------------------------------------------------------------------


def test_a_missing_file_names_what_is_near(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = tmp_path / "missing.traindx"
    assert message(missing).endswith(
        "There is no run file `" + str(missing) + "`. `traindx run SCRIPT` makes one."
    )
    (tmp_path / "traindx-runs").mkdir()
    path.rename(tmp_path / "traindx-runs" / "train-1.traindx")
    assert message(missing).endswith("Here are some: `traindx-runs/train-1.traindx`.")


def test_a_folder_names_the_runs_in_it(path: Path) -> None:
    text = message(path.parent)
    assert text == f"`{path.parent}` is a folder, not a run file. Here are some: `{path}`."


def test_an_empty_file_says_that_nothing_was_stored(tmp_path: Path) -> None:
    (tmp_path / "a.traindx").touch()
    assert "is empty: its run ended before anything was stored" in message(tmp_path / "a.traindx")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"loss,step\n1,2\n", "a text"),
        (b"x" * 10_000, "a text"),
        (pickle.dumps({"weight": 1}), "a pickle"),
        (b"\x1f\x8b\x08", "gzip data"),
        (b"\x89HDF\r\n", "an HDF5 file"),
        (b"\0\1\2", "something else"),
        (random.Random(0).randbytes(5000), "something else"),
    ],
)
def test_another_kind_of_file_is_named(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    assert message(path) == f"`{path}` is not a run file but {kind}."


def test_a_zip_archive_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("data.pkl", b"")
    assert "not a run file but a ZIP archive" in message(tmp_path / "model.pt")


def test_a_database_of_another_program_is_named(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    edit(path, "CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url TEXT)")
    assert message(path) == f"`{path}` is an SQLite database of another program, not a run file."


def test_a_pipe_is_refused_rather_than_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is a device or a pipe" in message(tmp_path / "pipe")


def test_a_link_that_leads_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    message(tmp_path / "loop")


def test_a_newer_schema_names_both_versions(path: Path) -> None:
    edit(path, "PRAGMA user_version = 7")
    text = message(path)
    assert "has run file schema 7, and traindx 0" in text
    assert "reads up to 4. Update it: `pip install --upgrade traindx`." in text


def test_write_ahead_logging_says_how_to_switch_back(path: Path) -> None:
    edit(path, "PRAGMA journal_mode = WAL")
    assert "PRAGMA journal_mode = DELETE" in message(path)


# -- damage --------------------------------------------------------------------------------------


def test_a_file_cut_short_at_any_length_is_refused(path: Path) -> None:
    content = path.read_bytes()
    for size in (5, 16, 60, 99, 100, 101, 511, 4095, 4096, 4097, len(content) - 1):
        path.write_bytes(content[:size])
        assert f"copy `{path.name}-journal`" in message(path)


def test_no_damaged_byte_ends_in_another_error(path: Path) -> None:
    content = path.read_bytes()
    rng = random.Random(1)
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(rng.choice((1, 3, 50))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        refused = _message_if_any(path)
        assert refused.isprintable()


def _message_if_any(path: Path) -> str:
    try:
        read(path)
    except BadRunFileError as error:
        return str(error)
    return ""


def test_a_page_of_noise_is_found(path: Path) -> None:
    content = path.read_bytes()
    page = len(content) // 4096 // 2 * 4096
    path.write_bytes(content[:page] + random.Random(0).randbytes(4096) + content[page + 4096 :])
    assert "is damaged" in message(path)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE scalars SET \"values\" = 'high'", "expected the bytes of 400 numbers"),
        ("UPDATE scalars SET \"values\" = x'00'", "expected the bytes of 400 numbers"),
        ('UPDATE scalars SET "values" = zeroblob(3201)', "expected the bytes of 400 numbers"),
        ("UPDATE scalars SET first_step = 1.5", "expected an integer, found 1.5"),
        ("UPDATE scalars SET steps = x''", "expected the bytes of 400 numbers"),
        ("UPDATE scalars SET places = zeroblob(400)", "a row names the missing place 0"),
        ("UPDATE scalars SET places = zeroblob(0)", "a row names the missing place 0"),
        ("UPDATE scalars SET batch = 'x'", "expected an integer, found 'x'"),
        ("UPDATE scalars SET count = 399", "expected the bytes of 399 numbers"),
        ("UPDATE scalars SET count = -1", "expected at most 65,536 numbers, found -1"),
        ("UPDATE scalars SET count = 1000000000000", "expected at most 65,536 numbers"),
        ("UPDATE scalars SET count = 65536", "expected the bytes of 65536 numbers"),
        ("UPDATE records SET counts = CAST(zeroblob(3199) || x'80' AS BLOB)", "beyond all counts"),
        ("UPDATE records SET zeros = 'none'", "expected the bytes of 400 numbers"),
        ("UPDATE records SET mean = x''", "expected the bytes of 400 numbers"),
        ("INSERT INTO events VALUES (9999, -5, 0, 1, '{}')", "its commits are out of order"),
        ("UPDATE places SET what = 5 WHERE what = 'grad'", "'5' is not a valid Point"),
        ("UPDATE places SET what = 'x' WHERE what = 'started'", "'x' is not a valid EventKind"),
        ("UPDATE places SET fqn = x'ff'", "expected a text"),
        ("UPDATE events SET detail = '[]'", "expected an object"),
        ("UPDATE events SET detail = '{'", "expected JSON"),
        ("UPDATE events SET detail = x'7b7d'", "expected JSON text"),
        ("UPDATE events SET detail = CAST(x'ff' AS TEXT)", "decode"),
        ("UPDATE descriptions SET kind = 'poem'", "there are no facts of the kind 'poem'"),
        ("UPDATE descriptions SET kind = 'loss'", "every field of LossFacts"),
        ("UPDATE descriptions SET facts = '{}'", "every field of"),
        ("INSERT INTO verdict VALUES (1, '{\"findings\": 3}', 0)", "expected an array, found 3"),
        ("INSERT INTO verdict VALUES (1, '{}', 0)", "its verdict is half an old and half a new"),
        ("UPDATE vectors SET count = 3", "expected the bytes of 3 numbers"),
        ("UPDATE vectors SET count = -1", "expected at most 65,536 numbers, found -1"),
        ("UPDATE vectors SET count = 65537", "expected at most 65,536 numbers, found 65537"),
        ("UPDATE vectors SET count = 9e18", "expected at most 65,536 numbers, found 9"),
        ("UPDATE vectors SET count = 'two'", "expected at most 65,536 numbers, found 'two'"),
        ("UPDATE vectors SET numbers = x'00'", "expected the bytes of 2 numbers"),
        ("UPDATE vectors SET numbers = zeroblob(9999)", "expected the bytes of 2 numbers"),
        ("UPDATE vectors SET numbers = 'sixteen letters.'", "expected the bytes of 2 numbers"),
        ("UPDATE vectors SET numbers = 7", "expected the bytes of 2 numbers"),
        ("UPDATE vectors SET step = 'last'", "expected an integer, found 'last'"),
        ("DELETE FROM vectors WHERE id > 100", "not as many as were stored"),
        ("DELETE FROM scalars", "not as many as were stored"),
        ("DELETE FROM stored", "not as many as were stored"),
        ("INSERT INTO stored VALUES (1)", "not as many as were stored"),
        ("DROP TABLE verdict", "its tables are not those of schema 4"),
        ("DROP TABLE vectors", "its tables are not those of schema 4"),
        ("ALTER TABLE scalars ADD COLUMN x", "its tables are not those of schema 4"),
    ],
)
def test_a_value_that_does_not_belong_is_damage(path: Path, statement: str, reason: str) -> None:
    edit(path, statement)
    text = message(path)
    assert "is damaged" in text
    assert reason in text


def test_a_view_that_never_ends_is_not_taken_for_a_table(path: Path) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    edit(
        path,
        "DROP TABLE scalars",
        f"CREATE VIEW scalars AS {endless} SELECT i AS id, i AS batch, 1, i, 0, 0, 0 FROM n",
    )
    assert "its tables are not those of schema 4" in message(path)


def test_an_index_or_a_view_of_the_users_own_does_no_harm(path: Path) -> None:
    edit(
        path,
        "CREATE INDEX by_place ON vectors (place, step)",
        "CREATE VIEW marks AS SELECT step FROM events",
    )
    assert read(path)[0] == ITEMS


# -- while others use it -------------------------------------------------------------------------


def test_a_run_that_goes_on_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "run.traindx"
    writer = Writer(path, interval=0)
    for end in (100, 200, len(ITEMS)):
        writer.write(ITEMS[end - 100 if end <= 200 else 200 : end])
        assert read(path)[0] == ITEMS[:end]
    writer.close()


def test_reading_leaves_no_trace(path: Path) -> None:
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    read(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_file_locked_by_another_program_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traindx.store.recovery.PATIENCE", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert message(path) == (
            f"`{path}` is locked by another program; try again once that is done."
        )


def test_a_link_is_read_like_the_file_itself(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "latest"
    link.symlink_to(path)
    assert read(link)[0] == ITEMS


def test_a_name_that_looks_like_a_uri_is_a_name(path: Path) -> None:
    odd = shutil.copy(path, path.parent / "a?mode=rwc&x=#é %41.traindx")
    assert read(Path(odd))[0] == ITEMS
