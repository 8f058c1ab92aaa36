"""Standard output that is full, closed, or of another encoding: one message, no traceback."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.twins import TRAINDX, run
from tests.report.sample import sample_items
from traindx.store.writer import Writer

COMMANDS = ["rules", "rule N001", "show RUN", "show RUN bn2", "diff RUN RUN", "report RUN -o -"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    writer = Writer(tmp_path_factory.mktemp("output") / "sample.traindx")
    writer.write(list(sample_items()))
    writer.close()
    return writer.path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize("command", [*COMMANDS, "check RUN", "check RUN --json -"])
def test_a_full_output_is_one_message(saved: Path, command: str):
    words = command.replace("RUN", str(saved))
    done = run(("sh", "-c", f"{TRAINDX} {words} > /dev/full"), saved.parent)
    assert done.returncode == 2
    assert done.stderr.decode() == "traindx: Cannot go on: No space left on device.\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_output_is_no_failure(saved: Path, command: str):
    words = command.replace("RUN", str(saved))
    done = run(("sh", "-c", f"{TRAINDX} {words} >&-"), saved.parent)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_without_chinese_gets_question_marks(saved: Path, command: str):
    words = command.replace("RUN", str(saved)).split()
    env = {"PYTHONIOENCODING": "latin-1"}
    done = run((TRAINDX, "--lang", "zh-Hant", *words), saved.parent, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    if command.startswith("report"):
        assert max(done.stdout.decode()) > "一"  # a page is UTF-8, as it says itself
    else:
        assert b"?" in done.stdout
