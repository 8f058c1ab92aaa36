"""The demo where it cannot do its work."""

from pathlib import Path

import pytest
from rich.progress import Progress

from traindx.cli import demo
from traindx.errors import UsageError


def test_a_demo_that_could_save_no_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_lines", lambda _words: iter(["epoch 1"]))
    with pytest.raises(UsageError, match=f"Nothing could be saved in `{tmp_path}`"):
        demo._show(demo.PROGRAMS[0], tmp_path, Progress(disable=True))


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"Cannot write to `.*file`: File exists"):
        demo.demo(tmp_path / "file")
