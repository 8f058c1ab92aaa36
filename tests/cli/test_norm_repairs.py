"""`traindx norm recalibrate` and `traindx norm fold` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.cli.twins import Command

PROGRAM = """
import torch
from torch import nn

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.BatchNorm1d(4))

DATA = 5 + 3 * torch.randn(120, 3, 8, generator=torch.Generator().manual_seed(1))

def with_loader():
    return net(), [(part, None) for part in DATA.split(40)], score

def loader_only():
    return net(), DATA.split(40)

def with_batch():
    return net(), DATA

def bad():
    return net(), 7

@torch.no_grad()
def score(model):
    model.eval()
    return model(DATA).std()
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "repair_program.py"
    file.write_text(PROGRAM)
    return file


def test_recalibration_closes_the_gap_and_saves_the_weights(
    traindx: Command, program: Path
) -> None:
    code, out, err = traindx("norm", "recalibrate", f"{program}:with_loader", "-o", "new.pt")
    assert (code, err) == (0, "")
    assert out.startswith("2 layers recalibrated on 3 batches")
    assert "evaluation: " in out
    assert "saved in new.pt" in out
    words = ("norm", "recalibrate", f"{program}:loader_only", "--checkpoint", "new.pt")
    _, again, _ = traindx(*words, "--json", "-")
    assert all(layer["gap"] < 1e-3 for layer in json.loads(again)["layers"])


def test_folding_shows_pairs_reasons_and_the_proof(traindx: Command, program: Path) -> None:
    code, out, _ = traindx("norm", "fold", f"{program}:with_batch", "-o", "folded.pt")
    assert code == 0
    assert "1 of 2 BatchNorm layers folded" in out
    assert "1 into 0" in out
    assert "3: its input is not the output of a convolution or linear layer" in out
    assert "greatest difference of an output" in out
    state = torch.load("folded.pt", weights_only=True)
    assert set(state) >= {"0.weight", "0.bias", "3.running_var"}
    assert "1.running_var" not in state
    _, text, _ = traindx("norm", "fold", f"{program}:net", "--shape", "4x3x8", "--json", "-")
    assert json.loads(text)["folded"] == [{"layer": "0", "norm": "1"}]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("recalibrate", "{file}:bad"), "return model, loader, accuracy"),
        (("recalibrate", "{file}:net"), "return model, loader, accuracy"),
        (("recalibrate", "{file}:with_loader", "--checkpoint", "no.pt"), "Cannot read `no.pt`"),
        (("recalibrate", "{file}:with_loader", "--out", "{file}"), "exists. Name a new file."),
        (("fold", "{file}:net"), "--shape 64x784"),
        (("fold", "{file}:net", "--shape", "3"), "The model fails on its batch"),
    ],
)
def test_what_cannot_be_done_is_told(
    traindx: Command, program: Path, words: tuple[str, ...], told: str
) -> None:
    code, out, err = traindx("norm", *(word.format(file=program) for word in words))
    assert (code, out) == (2, "")
    assert told in err


def test_both_speak_chinese(traindx: Command, program: Path) -> None:
    _, out, _ = traindx("norm", "fold", f"{program}:with_batch", "--lang", "zh-Hant")
    assert "2 個 BatchNorm 層中合併了 1 個" in out
    _, out, _ = traindx("norm", "recalibrate", f"{program}:with_loader", "--lang", "zh-Hant")
    assert "以 3 個批次重新校準了 2 層" in out
