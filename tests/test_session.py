"""A recording session, from its start to its verdict."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.zoo.forks import Forks
from traindx.run import Run
from traindx.session import Options, Session, redacted, run_name

torch = pytest.importorskip("torch")
nn = torch.nn


def train(*, clear: bool, steps: int = 40, before_step: Callable[[int], object] = id) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(steps):
        if clear:
            optimizer.zero_grad()
        model(torch.randn(16, 8)).pow(2).mean().backward()
        before_step(step)
        optimizer.step()


def complain(text: str) -> None:
    print(f"traindx: {text}", file=sys.stderr)


@contextmanager
def watch(name: str = "cell", *, folder: Path, every: int | None = None) -> Iterator[Session]:
    session = Session(name, Options(every=every, folder=folder), warn=complain)
    session.start()
    code = 1
    try:
        yield session
        code = 0
    finally:
        session.finish(code)


def codes(session: Session) -> set[str]:
    assert session.run.verdict is not None
    return {finding.code for finding in session.run.verdict.findings}


def test_a_block_is_watched_judged_and_saved(tmp_path: Path):
    call = nn.Module.__call__
    with watch("cell", folder=tmp_path, every=1) as session:
        train(clear=False)
    assert nn.Module.__call__ is call
    assert codes(session) == {"G006"}
    assert session.trained
    assert session.run.steps == session.run.measured_steps == 40
    (file,) = tmp_path.iterdir()
    saved = Run.load(file)
    assert saved.verdict == session.run.verdict
    assert saved.ended


def test_every_block_is_a_run_of_its_own(tmp_path: Path):
    with watch(folder=tmp_path) as first:
        train(clear=False)
    train(clear=False)  # seen by nobody
    with watch(folder=tmp_path) as second:
        train(clear=True, steps=30)
    assert (codes(first), codes(second)) == ({"G006"}, set())
    assert (first.run.steps, second.run.steps) == (40, 30)
    assert {first.run.path, second.run.path} == set(tmp_path.iterdir())


def test_an_exception_leaves_the_block_unchanged_and_the_run_whole(tmp_path: Path):
    error = KeyError("mine")

    def fail(step: int) -> None:
        if step == 20:
            raise error

    call = nn.Module.__call__
    with pytest.raises(KeyError) as raised, watch(folder=tmp_path) as session:
        train(clear=False, before_step=fail)
    assert raised.value is error
    assert nn.Module.__call__ is call
    assert codes(session) == {"G006"}
    assert session.run.header["exit_code"] == 1
    assert Run.load(next(tmp_path.iterdir())).steps == 20


def test_a_folder_that_cannot_be_written_is_one_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "taken").write_text("")
    with watch(folder=tmp_path / "taken") as session:
        assert capsys.readouterr().err.startswith("traindx: Cannot store the run in `")
        train(clear=False)
    assert codes(session) == {"G006"}
    assert session.run.path is None
    assert capsys.readouterr().err == ""


def test_a_block_that_trains_nothing_leaves_no_file(tmp_path: Path):
    with watch(folder=tmp_path) as session:
        assert len(list(tmp_path.iterdir())) >= 1
    assert not session.trained
    assert session.run.path is None
    assert list(tmp_path.iterdir()) == []


def test_a_torch_imported_after_the_block_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    finders = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", list(finders))
    monkeypatch.delitem(sys.modules, "torch")
    with watch(folder=tmp_path) as session:
        assert sys.meta_path != finders
    monkeypatch.undo()
    call = nn.Module.__call__
    session._arm()  # pyright: ignore
    assert nn.Module.__call__ is call


def test_a_failure_to_judge_is_a_warning_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    warnings: list[str] = []
    session = Session("x", Options(folder=tmp_path), warn=warnings.append)

    def fail() -> None:
        raise RuntimeError("rules broke")

    monkeypatch.setattr(session._engine, "close", fail)  # pyright: ignore
    session.start()
    train(clear=True, steps=5)
    assert session.finish(0).steps == 5
    assert warnings == ["The run could not be judged to its end: RuntimeError('rules broke')."]


FORKS = """
import os
from pathlib import Path
from tests.test_session import train, watch

with watch(folder=Path("runs")) as session:
    train(clear=True, steps=3)
    child = os.fork()
    if not child:
        train(clear=True, steps=3)
        session.finish(0)
        os._exit(0 if session.forked else 1)
    assert os.waitpid(child, 0)[1] == 0
    train(clear=True, steps=3)
assert not session.forked
assert session.run.steps == 6
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_neither_watches_nor_writes(tmp_path: Path, forks: Forks):
    """In a process of its own: where autograd has had threads, no fork can train."""
    (tmp_path / "script.py").write_text(FORKS, encoding="utf-8")
    done = forks.run(tmp_path, "script.py")
    assert done.code == 0, done.stderr
    (file,) = (tmp_path / "runs").iterdir()
    assert Run.load(file).steps == 6


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["train.py", "--lr", "0.1"], ["train.py", "--lr", "0.1"]),
        (["--api-key", "x", "y"], ["--api-key", "[redacted]", "y"]),
        (["--token=x", "password=y"], ["--token=[redacted]", "password=[redacted]"]),
        (["secret", "x"], ["secret", "x"]),
        (["--api-key"], ["--api-key"]),
    ],
)
def test_secrets_are_not_noted(command: list[str], shown: list[str]):
    assert redacted(command) == shown


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("train.py", "train"),
        ("a/b.c.py", "b.c"),
        ("package.train", "package.train"),
        ("folder/", "folder"),
        (".", "run"),
        ("/", "run"),
    ],
)
def test_a_run_is_named_after_what_ran(target: str, name: str):
    assert run_name(target) == name
