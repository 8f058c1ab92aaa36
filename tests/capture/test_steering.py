"""States that are loaded or left out, and what schedulers are told."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from tests.capture.watched import Recording, batch, mlp, watched


def train(net: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 6) -> None:
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()


def adam(net: nn.Module, lr: float = 1e-2) -> torch.optim.Adam:
    return torch.optim.Adam(net.parameters(), lr=lr)


def resumed(
    *, restore: bool = False, load: bool = True, lr: float = 1e-2, sgd: bool = False
) -> Recording:
    """A training of six steps, and another one of a new model with its weights."""
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=lr) if sgd else adam(net)
        train(net, optimizer)
        second = mlp()
        if load:
            second.load_state_dict(net.state_dict())
        other = torch.optim.SGD(second.parameters(), lr=lr) if sgd else adam(second, lr)
        if restore:
            other.load_state_dict(optimizer.state_dict())
        train(second, other)
    return recording


def test_an_optimizer_that_forgets_is_seen_with_the_one_before_it():
    (series,) = resumed().run.series("optimizer.forgotten")
    assert series.site == ("Adam", "Adam#2")
    assert list(series) == [(7, 6.0)]


@pytest.mark.parametrize(
    "settings",
    [{"restore": True}, {"load": False}, {"lr": 1e-3}, {"sgd": True}],
    ids=["restored", "from-scratch", "fine-tuning", "plain-sgd"],
)
def test_one_that_has_nothing_to_remember_is_not(settings: dict[str, Any]):
    assert resumed(**settings).sites("optimizer.forgotten") == set()


@pytest.mark.parametrize("restore", [False, True])
def test_a_state_in_a_file_is_to_be_loaded_as_well(restore: bool):
    before = mlp()
    optimizer = adam(before)
    train(before, optimizer)
    file = io.BytesIO()
    torch.save({"model": before.state_dict(), "training": {"adam": optimizer.state_dict()}}, file)
    file.seek(0)
    with watched() as recording:
        saved = torch.load(file, weights_only=True)
        net = mlp()
        net.load_state_dict(saved["model"])
        goes_on = adam(net)
        if restore:
            goes_on.load_state_dict(saved["training"]["adam"])
        train(net, goes_on)
    found = [series.site for series in recording.run.series("optimizer.forgotten")]
    assert found == ([] if restore else [("", "Adam")])


def test_what_a_scheduler_is_told_is_noted_at_its_optimizer():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scheduler = ReduceLROnPlateau(optimizer, mode="max")
        for number in (0.5, torch.tensor(0.75), 1):
            train(net, optimizer, steps=2)
            scheduler.step(number)  # pyright: ignore[reportArgumentType]
    assert list(recording.series("plateau.metric", "SGD")) == [(2, 0.5), (4, 0.75)]
    assert recording.values("plateau.more_is_better", "SGD") == [1, 1]


def test_all_is_as_before_afterwards():
    places = [
        (torch.optim.Optimizer, "load_state_dict"), (torch, "load"), (ReduceLROnPlateau, "step")
    ]  # fmt: skip
    before = [getattr(owner, name) for owner, name in places]
    with watched():
        assert all(
            getattr(owner, name) is not own
            for (owner, name), own in zip(places, before, strict=True)
        )
    assert [getattr(owner, name) for owner, name in places] == before
