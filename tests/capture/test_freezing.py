"""Freezing without effect, and frozen layers that are as they were initialized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import Recording, batch, mlp, watched

Prepare = Callable[[Any], None]


def train(net: nn.Module, params, steps: int = 5) -> None:
    optimizer = torch.optim.SGD(params, lr=0.5)
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()


def trained(prepare: Prepare) -> Recording:
    torch.manual_seed(0)
    with watched() as recording:
        net = mlp(sizes=(6, 16, 16, 3))
        prepare(net)
        train(net, net.parameters())
    return recording


def set_on_module(net: Any) -> None:
    net[2].requires_grad = False


def set_on_layers(net: Any) -> None:
    for layer in net:
        layer.requires_grad = False


def misspelt(net: Any) -> None:
    for param in net[2].parameters():
        param.require_grad = False


@pytest.mark.parametrize(
    ("prepare", "place", "count"),
    [(set_on_module, "2", 2), (set_on_layers, "", 6), (misspelt, "2", 2)],
)
def test_an_attribute_that_freezes_nothing_is_seen(prepare: Prepare, place: str, count: int):
    recording = trained(prepare)
    assert recording.sites("freeze.ignored") == {place}
    assert recording.values("freeze.ignored") == [count] * 4


def frozen(net: Any) -> None:
    net[2].requires_grad_(False)


def frozen_with_an_option(net: Any) -> None:
    net[2].requires_grad_(False)
    net[2].requires_grad = False


def allowed(net: Any) -> None:
    net[2].requires_grad = True


@pytest.mark.parametrize("prepare", [frozen, frozen_with_an_option, allowed])
def test_freezing_that_works_is_none(prepare: Prepare):
    assert trained(prepare).sites("freeze.ignored") == set()


def frozen_head(net: Any) -> None:
    net[4].requires_grad_(False)


def test_a_frozen_last_layer_is_new():
    assert trained(frozen_head).values("freeze.fresh", "4") == [1] * 4


def trained_head(net: Any) -> None:
    train(net, net.parameters(), steps=20)
    net[4].requires_grad_(False)


def normal_head(net: Any) -> None:
    nn.init.normal_(net[4].weight, std=0.02)
    net[4].requires_grad_(False)


@pytest.mark.parametrize("prepare", [trained_head, normal_head])
def test_one_of_another_distribution_is_not(prepare: Prepare):
    values = trained(prepare).values("freeze.fresh", "4")
    assert values
    assert set(values) == {0.0}


def test_other_layers_may_be_frozen_and_new():
    assert trained(frozen).sites("freeze.fresh") == set()


def test_a_last_layer_that_is_replaced_and_frozen_is_looked_at_anew():
    torch.manual_seed(0)
    with watched() as recording:
        net = mlp(sizes=(6, 16, 16, 3))
        train(net, net.parameters(), steps=6)
        net[4] = nn.Linear(16, 3).requires_grad_(False)
        train(net, net[:4].parameters(), steps=6)
    assert recording.values("freeze.fresh", "4") == [1] * 4
