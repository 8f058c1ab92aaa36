"""`traindx norm audit` from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import nn

from tests.cli.twins import Command

PROGRAM = """
import torch
from torch import nn

DATA = 5 + 3 * torch.randn(120, 3, 8, generator=torch.Generator().manual_seed(1))

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.BatchNorm1d(4))

def trained():
    model = net()
    for part in 30 * DATA.split(40):
        model(part)
    return model, DATA

def stale():
    model, batch = trained()
    model[1].running_mean += 3
    return model, batch

def loader():
    pairs = torch.utils.data.TensorDataset(DATA, torch.zeros(len(DATA)))
    return stale()[0], torch.utils.data.DataLoader(pairs, batch_size=40)

def keywords():
    return net(), {"input": DATA}

def broken():
    raise SystemExit(3)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "audit_program.py"
    file.write_text(PROGRAM)
    return file


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    model = cast(
        Any, nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.BatchNorm1d(4))
    )
    for layer in (model[1], model[3]):
        layer.num_batches_tracked += 90
        layer.running_mean += 1
    model[3].running_var[1] = -0.5
    torch.save({"state_dict": model.state_dict()}, tmp_path / "weights.pt")
    return tmp_path / "weights.pt"


def test_a_checkpoint_is_looked_at_without_a_model(traindx: Command, weights: Path) -> None:
    code, out, err = traindx("norm", "audit", weights)
    assert (code, err) == (1, "")
    assert "2 normalization layers, 1 error" in " ".join(out.split())
    assert "error negative-variance\n  where     3\n" in out
    assert "1 of 4 running variances are negative, down to -0.5" in out
    assert "a checkpoint does not tell" in out


def test_a_sound_model_has_nothing_found(traindx: Command, program: Path) -> None:
    code, out, _ = traindx("norm", "audit", f"{program}:trained", "--json", "a.json")
    assert code == 0
    assert "0 errors" not in out
    content = json.loads(Path("a.json").read_text())
    assert [one["check"] for one in content["findings"]] == ["bias-before-norm"]
    assert content["live"]
    assert content["batch"]


@pytest.mark.parametrize("name", ["stale", "loader"])
def test_a_stale_layer_is_named_with_its_share(traindx: Command, program: Path, name: str) -> None:
    code, text, _ = traindx("norm", "audit", f"{program}:{name}", "--json", "-")
    content = json.loads(text)
    assert code == 1
    (gap,) = [one for one in content["findings"] if one["check"] == "eval-gap"]
    assert gap["fqn"] == "1"
    assert gap["numbers"]["gap"] > 0.5
    assert sum(each["share"] for each in content["layers"]) + content["interaction"] == 1


def test_the_exit_code_is_as_severe_as_asked(traindx: Command, program: Path) -> None:
    words = ("norm", "audit", f"{program}:trained", "--steps", "45")
    assert traindx(*words)[0] == 0  # a warning: every layer has counted 90
    assert traindx(*words, "--fail-on", "warning")[0] == 1
    assert traindx("norm", "audit", f"{program}:trained", "--fail-on", "info")[0] == 1


def test_weights_are_put_into_the_model(traindx: Command, program: Path, weights: Path) -> None:
    words = ("norm", "audit", f"{program}:net", "--checkpoint", weights)
    code, out, _ = traindx(*words)
    assert code == 1
    assert "negative-variance" in out
    assert "there is no batch" in out


def test_a_shape_makes_noise_on_which_no_gap_is_taken(traindx: Command, program: Path) -> None:
    code, out, _ = traindx("norm", "audit", f"{program}:stale", "--shape", "16x3x8")
    assert code == 0
    assert "eval-gap, statistics-from-the-start: there is no batch of the model's data" in " ".join(
        out.split()
    )


def test_a_dict_is_the_models_keywords(traindx: Command, program: Path) -> None:
    code, out, _ = traindx("norm", "audit", f"{program}:keywords")
    assert code == 0
    assert "bias-before-norm" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("{file}:absent",), "has no `absent`"),
        (("{file}:broken",), "failed: SystemExit"),
        (("{file}:net", "--shape", "4x9x8"), "The model fails on its batch"),
        (("{file}:net", "--checkpoint", "no.pt"), "Cannot read `no.pt`"),
        (("no.pt",), "Cannot read `no.pt`"),
        (("{file}",), "Cannot read"),
        (("{file}:trained", "--json", "no/such/place.json"), "Cannot write"),
    ],
)
def test_what_cannot_be_done_is_told(
    traindx: Command, program: Path, words: tuple[str, ...], told: str
) -> None:
    code, out, err = traindx("norm", "audit", *(word.format(file=program) for word in words))
    assert (code, out) == (2, "")
    assert told in err


def test_it_speaks_chinese(traindx: Command, weights: Path) -> None:
    _, out, _ = traindx("norm", "audit", weights, "--lang", "zh-Hant")
    assert "2個正規化層" in "".join(out.split())
    assert "4個running變異數中有1個為負" in "".join(out.split())


def test_five_hundred_layers_take_at_most_five_seconds(tmp_path: Path) -> None:
    """CPU time of the whole process, the import of torch included."""
    state: dict[str, torch.Tensor] = {}
    for i in range(500):
        norm = cast(Any, nn.BatchNorm2d(512))
        norm.running_mean += 0.1
        state |= {f"b{i}.bn.{name}": value for name, value in norm.state_dict().items()}
        state[f"b{i}.conv.weight"] = torch.zeros(64, 64, 3, 3)
    torch.save(state, tmp_path / "large.pt")
    measured = textwrap.dedent(f"""
        import sys, time
        from traindx.cli.main import main
        sys.argv = ["traindx", "norm", "audit", {str(tmp_path / "large.pt")!r}]
        try:
            main()
        finally:
            print(time.process_time(), file=sys.stderr)
    """)
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", measured], capture_output=True, text=True, check=False, timeout=60
    )
    seconds = float(done.stderr.split()[-1])
    print(f"500 layers: {seconds:.2f} s of CPU, {time.monotonic() - start:.2f} s in all")
    assert "500 normalization layers" in " ".join(done.stdout.split())
    assert seconds < 5
