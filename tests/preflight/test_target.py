"""Naming a model: what is found, and what is told where nothing is."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from traindx.errors import UsageError
from traindx.preflight.target import Target, batch, load, parsed, size

PROGRAM = """
import torch
from torch import nn

net = nn.Linear(3, 2)
number = 7

def bare():
    return nn.Linear(3, 2)

def with_batch():
    return nn.Linear(3, 2), torch.ones(5, 3)

def with_two_inputs():
    return nn.Bilinear(3, 4, 2), (torch.ones(5, 3), torch.ones(5, 4))

def failing():
    return nn.Linear(3, "two")

def nothing():
    pass

def needing(width):
    return nn.Linear(width, 2)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    file = tmp_path / "named_program.py"
    file.write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    return str(file)


@pytest.mark.parametrize("name", ["net", "bare"])
def test_a_model_or_what_makes_one_is_found(program: str, name: str) -> None:
    target = load(f"{program}:{name}")
    assert isinstance(target.model, torch.nn.Linear)
    assert target.inputs == ()


def test_a_module_is_imported_by_name(program: str) -> None:
    assert isinstance(load("named_program:net").model, torch.nn.Linear)


def test_a_batch_comes_with_its_model(program: str) -> None:
    (x,) = load(f"{program}:with_batch").inputs
    assert isinstance(x, torch.Tensor)
    assert x.shape == (5, 3)
    assert len(load(f"{program}:with_two_inputs").inputs) == 2


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nett", "has no `nett`. Did you mean net"),
        ("zzz", "has no `zzz`."),
        ("number", "gives a `int`. It needs to be a `torch.nn.Module`"),
        ("nothing", "gives a `NoneType`"),
        ("failing", "failed: TypeError"),
        ("needing", "failed: TypeError: needing() missing 1 required positional argument"),
    ],
)
def test_what_is_no_model_is_told(program: str, name: str, words: str) -> None:
    with pytest.raises(UsageError) as told:
        load(f"{program}:{name}")
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("net", "A target is `package.module:name` or `file.py:name`; got 'net'."),
        (":net", "got ':net'"),
        ("nowhere.py:net", "There is no file `nowhere.py`."),
        (
            "no_such_module:net",
            "cannot be imported: ModuleNotFoundError: No module named 'no_such_module'.",
        ),
    ],
)
def test_what_is_nowhere_is_told(target: str, words: str) -> None:
    with pytest.raises(UsageError) as told:
        load(target)
    assert words in str(told.value)


def test_a_program_that_cannot_run_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "broken_program.py"
    file.write_text("x = 1\ny = x / 0\n")
    with pytest.raises(UsageError, match=r"ZeroDivisionError: .* \(broken_program.py:2\)"):
        load(f"{file}:net")


def test_a_program_finds_no_arguments_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ours := ["traindx", "preflight", "parsing_program.py:make"])
    file = tmp_path / "parsing_program.py"
    file.write_text(
        "import argparse\nfrom torch import nn\n"
        "given = argparse.ArgumentParser().parse_args()\n"
        "def make():\n    argparse.ArgumentParser().parse_args()\n    return nn.Linear(3, 2)\n"
    )
    assert load(f"{file}:make").model is not None
    assert sys.argv is ours


def test_a_shape_makes_a_standard_normal_batch_of_its_own_generator(program: str) -> None:
    target, before = load(f"{program}:net"), torch.get_rng_state()
    (one,), (again,) = (batch(target, "net", shape="2000x3", seed=4) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert isinstance(one, torch.Tensor)
    assert isinstance(again, torch.Tensor)
    assert torch.equal(one, again)
    assert abs(float(one.std()) - 1) < 0.05
    assert size((one,)) == 2000


def test_without_a_batch_its_shape_is_asked_for(program: str) -> None:
    with pytest.raises(UsageError, match="--shape 64x784"):
        batch(load(f"{program}:net"), "net", shape=None, seed=0)


@pytest.mark.parametrize("text", ["", "64", "64x", "0x3", "-1x3", "axb", "3.5", "²x3"])
def test_a_shape_is_whole_numbers(text: str) -> None:
    if text == "64":
        assert parsed(text) == (64,)
        return
    with pytest.raises(UsageError, match="A shape is whole numbers from 1 on"):
        parsed(text)


def test_what_leaves_the_program_is_told_and_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "leaving_program.py"
    file.write_text("raise SystemExit(0)\n")
    path = list(sys.path)
    with pytest.raises(UsageError, match=r"SystemExit: 0 \(leaving_program.py:1\)"):
        load(f"{file}:net")
    assert sys.path == path
    assert "leaving_program" not in sys.modules


def test_a_file_named_like_a_module_of_python_does_not_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / "random.py"
    file.write_text("from torch import nn\nnet = nn.Linear(3, 2)\n")
    there = sys.modules["random"]
    assert load(f"{file}:net").inputs == ()
    assert sys.modules["random"] is there
    assert sys.modules.pop("_random", None) is not None


def test_a_loader_gives_its_first_batch_and_of_that_the_input() -> None:
    model = torch.nn.Linear(3, 2)
    loader = ((torch.full((5, 3), float(i)), torch.zeros(5)) for i in range(3))
    (x,) = Target(model, (loader,)).inputs
    assert isinstance(x, torch.Tensor)
    assert torch.equal(x, torch.zeros(5, 3))
    with pytest.raises(UsageError, match="The loader gives no batch"):
        _ = Target(model, (iter(()),)).inputs

    def failing() -> Iterator[torch.Tensor]:
        raise OSError("gone")
        yield

    with pytest.raises(UsageError, match="The loader fails: OSError: gone"):
        _ = Target(model, (failing(),)).inputs


def test_a_batch_larger_than_memory_is_not_made() -> None:
    with pytest.raises(UsageError, match=r"has 1(\.0)?[eE]\+12 numbers"):
        parsed("1000000x1000000")
