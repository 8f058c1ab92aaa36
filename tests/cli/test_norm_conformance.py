"""`traindx norm conformance` as a user runs it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.zoo.forks import Ended, Forks

Run = Callable[..., Ended]
"""Runs `traindx norm conformance` in the folder of the test."""


@pytest.fixture
def run(forks: Forks, tmp_path: Path) -> Run:
    return lambda *arguments: forks.run(tmp_path, "norm", "conformance", *arguments, watched=True)


@pytest.mark.slow
def test_torch_conforms_and_channels_last_does_not(tmp_path: Path, run: Run) -> None:
    plain = run("torch", "--json", str(tmp_path / "torch.json"))
    assert plain.code == 0, plain.stdout
    document = json.loads((tmp_path / "torch.json").read_text("utf-8"))
    assert [layer["layer"] for layer in document["targets"][0]["layers"]]
    folder = tmp_path / "programs"
    last = run("torch-channels-last", "--programs", str(folder), "--html", str(tmp_path / "a.html"))
    assert last.code == 1
    assert "one-pass variance" in last.stdout
    assert list(folder.glob("*GroupNorm*one-pass-variance.py"))
    assert (tmp_path / "a.html").read_text("utf-8").startswith("<!doctype html>")


def test_a_layer_of_one_s_own_is_examined(tmp_path: Path, run: Run) -> None:
    (tmp_path / "own.py").write_text(
        "from torch import nn\n\n\ndef layer(n):\n    return nn.LayerNorm(n, eps=1e-3)\n"
    )
    done = run("own:layer")
    assert done.code == 0, done.stderr
    assert "eps is 0.001, and not 1e-05" in done.stdout
    assert run("own:layer", "--fail-on", "info").code == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "needs a target: `traindx norm conformance torch`"),
        (["torch", "--norm", "torch.LayerNorm"], "`--norm` says what `package:factory` should be"),
        (["torch", "--json", "nowhere/a.json"], "make the folder"),
        (["torch", "--html", "."], "it is a folder"),
        (["torch", "--programs", "deep.json"], "Cannot write `deep.json`"),
        (["deep.json"], "This is no conformance document"),
    ],
)
def test_what_cannot_be_done_is_told_before_the_work(
    arguments: list[str], words: str, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    done = run(*arguments)
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.startswith("traindx: ")
    assert words in done.stderr


def test_what_is_not_there_is_told_in_one_sentence(run: Run) -> None:
    done = run("theano")
    assert done.code == 2
    assert done.stderr.startswith("traindx: A target is one of `flax`")
    assert "Traceback" not in done.stderr
