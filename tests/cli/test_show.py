"""`traindx show`: a layer or parameter of a saved run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.twins import Command
from tests.report.sample import sample_items
from traindx.store.writer import Writer


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sample run as a file, the last of the working folder's."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "traindx-runs"
    folder.mkdir()
    writer = Writer(folder / "sample.traindx")
    writer.write(list(sample_items()))
    writer.close()
    return writer.path


def test_without_a_place_every_layer_is_listed(traindx: Command, saved: Path) -> None:
    code, out, err = traindx("show", saved)
    assert (code, err) == (0, "")
    assert "net (ConvNet)" in out
    assert "conv1" in out


def test_a_place_is_shown_with_what_was_measured(traindx: Command, saved: Path) -> None:
    code, out, _ = traindx("show", saved, "bn2")
    assert code == 0
    assert out.startswith("net · bn2 (BatchNorm2d, layer 4 of 6)")
    assert "norm.running_gap" in out


def test_a_single_word_that_is_no_file_is_a_place_of_the_last_run(
    traindx: Command, saved: Path
) -> None:
    assert traindx("show", "bn2")[1] == traindx("show", saved, "bn2")[1]
    assert traindx("show")[1] == traindx("show", saved)[1]


def test_an_unknown_place_names_the_nearest(traindx: Command, saved: Path) -> None:
    code, out, err = traindx("show", saved, "bn3")
    assert (code, out) == (2, "")
    assert "no layer or parameter `bn3`" in err
    assert "`bn2`" in err


def test_a_run_that_is_none_is_one_message(traindx: Command, saved: Path) -> None:
    code, out, err = traindx("show", "no.traindx", "bn2")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "There is no run file `no.traindx`" in err
