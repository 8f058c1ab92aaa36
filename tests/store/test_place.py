"""Where run files are put, and which one is the latest."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest

from traindx.errors import BadRunFileError
from traindx.store.place import latest, new_path, run_files

NOON = datetime(2030, 1, 2, 12, 0, 5)


def test_a_run_is_named_after_its_script_and_time(tmp_path: Path) -> None:
    path = new_path(tmp_path / "deep" / "runs", "train", NOON)
    assert path == tmp_path / "deep" / "runs" / "train-20300102-120005.traindx"


def test_two_runs_in_one_second_get_two_files(tmp_path: Path) -> None:
    names = [new_path(tmp_path, "train", NOON).name for _ in range(3)]
    assert names[1:] == ["train-20300102-120005-2.traindx", "train-20300102-120005-3.traindx"]


def test_runs_that_start_at_once_never_share_a_file(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = [*pool.map(lambda _: new_path(tmp_path, "train", NOON), range(40))]
    assert len(set(paths)) == 40


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("pkg/sub:train", "pkg_sub_train"),
        ("..", "run"),
        ("", "run"),
        ("a\x1b[2J\nb", "a_[2J_b"),
        ("обучение", "обучение"),
        ("half\ud800", "half_"),
    ],
)
def test_a_stem_becomes_a_plain_file_name(tmp_path: Path, stem: str, name: str) -> None:
    path = new_path(tmp_path, stem, NOON)
    assert path == tmp_path / f"{name}-20300102-120005.traindx"
    assert path.is_file()


def test_a_long_script_name_leaves_room_for_the_journal(tmp_path: Path) -> None:
    path = new_path(tmp_path, "ü" * 300, NOON)
    assert len(f"{path.name}-journal".encode()) < 255


def test_the_latest_run_is_the_one_last_written_to(tmp_path: Path) -> None:
    first, second = (new_path(tmp_path, stem, NOON) for stem in ("a", "b"))
    os.utime(first, (2000, 2000))
    os.utime(second, (1000, 1000))
    (tmp_path / "notes.txt").touch()
    (tmp_path / "folder.traindx").mkdir()
    assert latest(tmp_path) == first
    assert run_files(tmp_path) == [first, second]


def test_no_run_at_all_says_how_to_make_one(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(BadRunFileError, match=r"no run file in `.*`\. `traindx run SCRIPT`"):
            latest(folder)
