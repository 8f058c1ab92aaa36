"""`traindx norm trace` and `traindx norm presets`."""

from __future__ import annotations

import json

import pytest

from tests.cli.twins import Command

SHEET = "1,2;3,0;5,4"


def test_the_sheet_is_traced_as_text(traindx: Command) -> None:
    code, out, err = traindx("norm", "trace", SHEET, "--weight", "2,.5", "--bias=-1,1")
    assert (code, err) == (0, "")
    assert "-3.44948515  1" in out
    assert "variance_unbiased    sum_of_squares / (n - 1)" in out
    assert "running_var_after    (1 - 0.1) * before + 0.1 * variance_unbiased" in out


def test_the_json_has_every_digit(traindx: Command) -> None:
    code, out, _ = traindx("norm", "trace", SHEET, "--format", "json", "--grad", SHEET)
    assert code == 0
    lines = {line["name"]: line for line in json.loads(out)["lines"]}
    assert lines["running_mean_after"]["value"] == [0.30000000000000004, 0.2]
    assert lines["grad_input"]["shape"] == [3, 2]


def test_markdown_is_a_table(traindx: Command) -> None:
    words = ("-n", "torch.GroupNorm", "-o", "num_groups=1", "--format", "markdown", "--digits", "3")
    code, out, _ = traindx("norm", "trace", SHEET, *words)
    assert code == 0
    assert "| name | formula | value |" in out
    assert "| `centered` | x - mean | -0.5  0.5<br>1.5  -1.5<br>0.5  -0.5 |" in out


def test_it_speaks_chinese(traindx: Command) -> None:
    _, out, _ = traindx("norm", "trace", SHEET, "--format", "markdown", "--lang", "zh-Hant")
    assert "| 名稱 | 公式 | 值 |" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("1,x",), "is no array of numbers"),
        (("1,nan;2,3",), "Normalization needs finite numbers for the input; got nan"),
        (("1,2",), "An axis must exist in the input"),
        (("1,2;3,4", "-n", "torch.LayerNrm"), "torch.LayerNorm"),
        (("1,2;3,4", "-o", "eps=-1"), "needs a positive, finite `eps`"),
        (("1,2;3,4", "--running-mean", "0,0"), "a mean and a variance"),
        (("1,2;3,4", "-n", "torch.spectral_norm"), "needs its power vectors"),
    ],
)
def test_what_cannot_be_traced_is_told(traindx: Command, words: tuple[str, ...], told: str) -> None:
    code, out, err = traindx("norm", "trace", *words)
    assert (code, out) == (2, "")
    assert told in err


def test_the_layers_that_are_known_are_listed(traindx: Command) -> None:
    code, out, _ = traindx("norm", "presets")
    assert code == 0
    assert "keras.BatchNormalization" in out
    _, one, _ = traindx("norm", "presets", "torch.GroupNorm")
    assert "num_groups     must be given" in one
    code, _, err = traindx("norm", "presets", "torch.GroupNom")
    assert code == 2
    assert "torch.GroupNorm" in err
