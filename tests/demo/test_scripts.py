"""The demo's three scripts, run bare: one learns nothing, two differ by a single argument."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.zoo.forks import Forks
from traindx.demo import evaluate, healthy_batchnorm, stale_batchnorm

FOLDER = Path(evaluate.__file__).parent


Train = Callable[..., str]
"""Runs a script and returns what it prints."""


@pytest.fixture
def train(forks: Forks, tmp_path: Path) -> Train:
    def run(name: str, *arguments: str | Path) -> str:
        done = forks.run(tmp_path, FOLDER / f"{name}.py", *arguments)
        assert done.code == 0, done.stderr
        return done.stdout

    return run


def last_accuracies(output: str) -> dict[str, float]:
    found = re.findall(r"(\w+) accuracy (\d\.\d+)", output.splitlines()[-1])
    return {kind: float(value) for kind, value in found}


def test_the_sigmoid_network_stays_at_chance(train: Train):
    assert last_accuracies(train("sigmoid_chain", "--epochs", "3"))["test"] < 0.15


def test_the_twins_differ_by_the_momentum_alone():
    stale = (FOLDER / "stale_batchnorm.py").read_text(encoding="utf-8").splitlines()
    healthy = (FOLDER / "healthy_batchnorm.py").read_text(encoding="utf-8").splitlines()
    changed = [line.strip() for line in difflib.ndiff(stale, healthy) if line[0] in "+-"]
    assert [re.sub(r"\s+", " ", line) for line in changed] == [
        "- nn.BatchNorm2d(out_channels, momentum=0.001),",
        "+ nn.BatchNorm2d(out_channels, momentum=0.1),",
    ]


def test_the_stale_network_collapses_in_evaluation_and_its_twin_does_not(
    tmp_path: Path, train: Train
):
    stale = train("stale_batchnorm", "--epochs", "2", "--save", tmp_path / "stale.pt")
    healthy = train("healthy_batchnorm", "--epochs", "2", "--save", tmp_path / "healthy.pt")
    assert last_accuracies(stale)["train"] == last_accuracies(healthy)["train"] > 0.8
    assert last_accuracies(stale)["test"] < 0.4
    assert last_accuracies(healthy)["test"] > 0.8

    stale_state = torch.load(tmp_path / "stale.pt")
    healthy_state = torch.load(tmp_path / "healthy.pt")
    weights = dict(stale_batchnorm.build_model().named_parameters())
    assert all(torch.equal(stale_state[name], healthy_state[name]) for name in weights)
    healthy_batchnorm.build_model().load_state_dict(healthy_state)
