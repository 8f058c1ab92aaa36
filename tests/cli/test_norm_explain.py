"""`traindx norm explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.cli.twins import Command

PAIR = ("norm", "explain", "torch.BatchNorm2d", "keras.BatchNormalization")


def test_differences_stand_under_how_far_they_are_felt(traindx: Command) -> None:
    code, out, err = traindx(*PAIR)
    assert (code, err) == (0, "")
    assert out.startswith("from torch.BatchNorm2d to keras.BatchNormalization: 10 differences")
    titles = ["the output is another", "evaluation is the same, training is not"]
    assert [out.index(title) for title in titles] == sorted(out.index(t) for t in titles)
    assert "eps: 1e-05 | 0.001" in out


def test_a_checkpoint_gives_its_own_numbers(traindx: Command, tmp_path: Path) -> None:
    model = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2))
    model[1].running_var[1] = 1e-4  # pyright: ignore[reportIndexIssue]
    torch.save(model.state_dict(), tmp_path / "w.pt")
    code, out, _ = traindx(*PAIR, "--checkpoint", tmp_path / "w.pt")
    assert code == 0
    assert "1, channel 1: at its running variance 0.0001 the output is 0.3162 times" in " ".join(
        out.split()
    )


def test_options_and_elements_are_taken(traindx: Command) -> None:
    words = ("-a", "eps=1e-3", "-b", "axis=1", "--elements", "4", "--format", "json")
    code, out, _ = traindx(*PAIR, *words)
    assert code == 0
    found = {one["field"]: one for one in json.loads(out)["differences"]}
    assert "eps" not in found
    assert "reduced" not in found
    assert found["running.variance"]["data"]["variance_times"] == [0.75]
    assert found["running.momentum"]["reach"] == "training"


def test_markdown_is_a_table_with_what_it_does(traindx: Command) -> None:
    code, out, _ = traindx(*PAIR, "--format", "markdown")
    assert code == 0
    assert "| `eps` | 1e-05 | 0.001 |" in out
    assert "- `running.momentum`: A new batch weighs 0.1 and 0.01" in out


def test_equal_layers_have_no_difference(traindx: Command) -> None:
    code, out, _ = traindx("norm", "explain", "torch.BatchNorm1d", "torch.BatchNorm2d")
    assert (code, out.strip()) == (0, "from torch.BatchNorm1d to torch.BatchNorm2d: 0 differences")


def test_it_speaks_chinese(traindx: Command) -> None:
    _, out, _ = traindx(*PAIR, "--lang", "zh-Hant")
    assert "從 torch.BatchNorm2d 到 keras.BatchNormalization：10 項差異" in out
    assert "評估相同，訓練不同" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("torch.BatchNrm", "torch.BatchNorm1d"), "torch.BatchNorm"),
        (("torch.BatchNorm1d", "torch.BatchNorm1d", "-a", "eps"), "An option is `NAME=VALUE`"),
        (("torch.BatchNorm1d", "torch.BatchNorm1d", "-b", "eps=-1"), "a positive, finite `eps`"),
        (
            ("torch.BatchNorm1d", "torch.LayerNorm", "--checkpoint", "none.pt"),
            "Cannot read `none.pt`",
        ),
    ],
)
def test_what_cannot_be_explained_is_told(
    traindx: Command, words: tuple[str, ...], told: str
) -> None:
    code, out, err = traindx("norm", "explain", *words)
    assert (code, out) == (2, "")
    assert told in err
