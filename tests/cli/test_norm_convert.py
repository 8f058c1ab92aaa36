"""`traindx norm convert`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.cli.twins import Command

PROGRAM = """
from torch import nn

def net():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6, eps=1e-4, momentum=0.2), nn.GroupNorm(2, 6),
        nn.LocalResponseNorm(3),
    )

def averaging():
    return nn.Sequential(nn.BatchNorm2d(6, momentum=None))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, and a checkpoint of a network with two norms."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "convert_program.py").write_text(PROGRAM)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.LayerNorm(6))
    model[:2](torch.randn(4, 3, 8, 8))
    torch.save(model.state_dict(), tmp_path / "w.pt")
    return tmp_path


LAYER = ("--layer", "2=torch.LayerNorm,eps=1e-5", "--no-frameworks")


def test_a_checkpoint_becomes_a_tree_of_flax_with_its_proof(traindx: Command, folder: Path) -> None:
    words = ("--to", "linen", "-o", "w.msgpack", *LAYER, "--rename", "1=bn", "--rename", "*=norm_*")
    code, out, err = traindx("norm", "convert", "w.pt", *words)
    assert (code, err) == (0, "")
    assert out.startswith("w.pt: 2 normalization layers from torch to linen, 0 refused")
    told = " ".join(out.split())
    assert "1 -> bn BatchNorm 6" in told
    assert "2 -> norm_2 LayerNorm 6" in told
    assert "nn.BatchNorm(use_running_average=True, epsilon=1e-05, momentum=0.9) for bn" in told
    assert "eps 1e-05 is the default of torch, since the file does not tell: 1;" in told
    assert "2 arrays of other layers stay behind" in told
    assert "by our formulas in float64, from the file as it was written, 2 layers" in told
    assert "saved in w.msgpack" in out
    back = ("--from", "linen", "--to", "torch", "-o", "back.safetensors", "--no-frameworks")
    hint = ("--layer", "norm_2=flax.LayerNorm,eps=1e-5")
    code, _, _ = traindx("norm", "convert", "w.msgpack", *back, *hint)
    assert code == 0


def test_a_refused_layer_is_told_with_its_repair_and_nothing_is_written(
    traindx: Command, folder: Path
) -> None:
    before = sorted(os.listdir(folder))
    code, out, _ = traindx("norm", "convert", "w.pt", "--to", "onnx", "-o", "w.onnx")
    assert code == 1
    assert "refused, so nothing is written" in out
    assert "--leave-out NAME" in " ".join(out.split())
    assert sorted(os.listdir(folder)) == before
    words = ("--to", "onnx", "-o", "w.onnx", "--leave-out", "2", "--no-frameworks")
    code, out, _ = traindx("norm", "convert", "w.pt", *words)
    assert code == 0
    assert "left out: 2" in out


def test_a_model_tells_everything_of_its_layers(traindx: Command, folder: Path) -> None:
    words = ("--to", "onnx", "-o", "w.onnx", "--json", "-", "--no-frameworks")
    code, out, _ = traindx("norm", "convert", "convert_program.py:net", *words)
    assert code == 0
    found = json.loads(out)
    assert [one["code"] for one in found["layers"]] == [
        "BatchNormalization(epsilon=0.0001, momentum=0.8)",
        "GroupNormalization(epsilon=1e-05, num_groups=2)",
        "LRN(size=3, alpha=0.0001, beta=0.75, bias=1.0)",
    ]
    assert all(one["assumed"] == [] for one in found["layers"])
    assert [one["by"] for one in found["proofs"]] == ["reference"] * 3
    code, out, _ = traindx("norm", "convert", "convert_program.py:averaging", "--to", "nnx")
    assert code == 1
    assert "--momentum 0.1" in " ".join(out.split())


def test_a_dry_run_lists_and_writes_nothing(traindx: Command, folder: Path) -> None:
    words = ("--to", "nnx", "-o", "w.msgpack", *LAYER, "--dry-run")
    code, out, _ = traindx("norm", "convert", "w.pt", *words)
    assert code == 0
    assert "proof" not in out
    assert not (folder / "w.msgpack").exists()


def test_training_needs_counts(traindx: Command, folder: Path) -> None:
    words = ("--to", "linen", "--for", "training", *LAYER)
    code, out, _ = traindx("norm", "convert", "w.pt", *words)
    assert code == 1
    assert "`--elements`" in out
    code, out, _ = traindx("norm", "convert", "w.pt", *words, "--elements", "64")
    assert code == 0
    assert "a training step of both, by our formulas, 1 layer" in " ".join(out.split())


def test_it_speaks_chinese(traindx: Command, folder: Path) -> None:
    words = ("--to", "linen", *LAYER, "--lang", "zh-Hant")
    _, out, _ = traindx("norm", "convert", "w.pt", *words)
    assert "從 torch 到 linen，拒絕 0 層" in out
    assert "在你的程式中" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("w.pt", "--to", "jax"), "A framework is one of torch, linen, nnx, keras, onnx; got jax."),
        (("w.pt", "--to", "onnx", "-o", "w.pt"), "exists. Name a new file."),
        (("w.pt", "--to", "onnx", "-o", "no/w.onnx"), "There is no folder `no`"),
        (("w.pt", "--to", "onnx", *LAYER, "-o", "w.txt"), "ends in one of .onnx"),
        (("w.txt", "--to", "onnx"), "needs an ending that tells its format"),
        (("none.npz", "--to", "onnx"), "Cannot read `none.npz`: No such file"),
        (("w.pt", "--to", "onnx", "--layer", "2"), "PATTERN=PRESET"),
        (("w.pt", "--to", "onnx", "--rename", "2"), "OLD=NEW"),
        (("none.py:net", "--to", "onnx"), "none.py"),
    ],
)
def test_what_cannot_be_converted_is_told(
    traindx: Command, folder: Path, words: tuple[str, ...], told: str
) -> None:
    code, out, err = traindx("norm", "convert", *words)
    assert (code, out) == (2, "")
    assert told in err
