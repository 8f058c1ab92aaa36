"""`traindx signal`: a model's picture from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.twins import Command

PROGRAM = """
import torch
from torch import nn

def deep():
    torch.manual_seed(0)
    layers = [m for _ in range(20) for m in (nn.Linear(64, 64), nn.Sigmoid())]
    return nn.Sequential(*layers), torch.randn(128, 64)

def gelu():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.LSTM(64, 4))

class Odd(nn.Linear):
    pass

def hostile():
    model = nn.Sequential()
    model.add_module("[red]\\x1b[31mx", Odd(4, 4))
    return model, torch.ones(3, 4)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "signal_program.py"
    file.write_text(PROGRAM)
    return file


def test_twenty_sigmoid_layers_are_shown_with_theory_beside(
    traindx: Command, program: Path
) -> None:
    code, out, err = traindx("signal", f"{program}:deep")
    assert (code, err) == (0, "")
    assert "20 layers with weights, a batch of 128 samples" in out
    assert "Sigmoid: with the gain 1.846, a gradient's mean square is multiplied by" in out
    assert "<1e-12 depends on the sample: the rest" in out
    assert out.count("Linear") == 20


def test_a_gain_that_does_not_hold_is_told(traindx: Command, program: Path) -> None:
    code, out, _ = traindx("signal", f"{program}:gelu", "--shape", "32x64")
    assert code == 0
    assert "GELU: the gain 1.534 keeps a mean square of 1, but not firmly" in out
    assert "4 LSTM: theory has no formula for LSTM" in out


def test_the_json_says_the_same(traindx: Command, program: Path) -> None:
    code, out, _ = traindx("signal", f"{program}:deep", "--json", "-")
    assert code == 0
    document = json.loads(out)
    assert document["schema"] == 1
    assert document["samples"] == 128
    assert len(document["layers"]) == 40
    first = document["layers"][0]
    assert first["kind"] == "Linear"
    assert first["right_gain"] == pytest.approx(1.0, rel=0.05)
    assert first["gradient_rms"] == pytest.approx(first["expected_gradient_rms"], rel=0.5)
    assert document["jacobian_bound"] < 1e-9
    assert document["layers"][-1]["right_gain"] is None


def test_it_speaks_chinese(traindx: Command, program: Path) -> None:
    code, out, _ = traindx("signal", f"{program}:deep", "--lang", "zh-Hant")
    assert code == 0
    assert "這說明什麼" in out
    assert "what this says" not in out


def test_a_hostile_name_does_not_reach_the_terminal(traindx: Command, program: Path) -> None:
    code, out, _ = traindx("signal", f"{program}:hostile")
    assert code == 0
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nothing",), "A target is `package.module:name`"),
        (("{file}:deeep",), "Did you mean deep?"),
        (("{file}:gelu",), "--shape 64x784"),
        (("{file}:gelu", "--shape", "3xq"), "A shape is whole numbers"),
        (("{file}:gelu", "--shape", "3x5"), "The model fails on its batch"),
        (("{file}:deep", "--variance", "0"), "finite number over 0"),
        (("{file}:deep", "--variance", "nan"), "finite number over 0"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(
    traindx: Command, program: Path, words: tuple[str, ...], told: str
) -> None:
    code, out, err = traindx("signal", *(word.format(file=program) for word in words))
    assert (code, out) == (2, "")
    assert told in err
