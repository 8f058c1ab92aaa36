"""Layers and tensors that a model uses and does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import batch, watched


class Net(nn.Module):
    """Its first layer is its own; the rest is what `make` puts into an attribute."""

    def __init__(self, make: Callable[[], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inlet = nn.Linear(6, 3)
        self.extra = make()

    def forward(self, x):
        x = self.inlet(x)
        for part in self.extra.values() if isinstance(self.extra, dict) else self.extra:
            x = part(x) if isinstance(part, nn.Module) else x * part
        return x


def found(make: Callable[[], Any], *, others: bool = False, by_hand: bool = False):
    """Where and how many tensors are left out, after three steps."""
    with watched() as recording:
        net = Net(make)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        if others:
            optimizer.add_param_group({"params": net.extra[0].parameters()})
        x, y = batch()
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
            if by_hand:
                with torch.no_grad():
                    net.extra[0].sub_(0.1 * net.extra[0].grad)
    return {s.site.fqn: [*s.values] for s in recording.run.series("model.unregistered")}


def frozen() -> nn.Module:
    return nn.Linear(3, 3).requires_grad_(requires_grad=False)


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: [nn.Linear(3, 3), nn.Linear(3, 3)], 4),
        (lambda: (nn.Linear(3, 3, bias=False),), 1),
        (lambda: {"a": nn.Linear(3, 3)}, 2),
        (lambda: [torch.ones(3, requires_grad=True)], 1),
    ],
    ids=["list", "tuple", "dict", "tensor"],
)
def test_layers_and_tensors_in_a_plain_container_are_seen(make, count):
    assert found(make) == {"extra": [count, count]}


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.ModuleList([nn.Linear(3, 3)]),
        lambda: [frozen()],
        lambda: [nn.Linear(3, 3).eval()],
        lambda: [torch.ones(3)],
        lambda: [nn.ReLU()],
    ],
    ids=["registered", "frozen", "helper", "constant", "no-parameters"],
)
def test_what_is_not_to_be_trained_is_left_alone(make):
    assert found(make) == {}


def test_what_an_optimizer_holds_is_trained():
    assert found(lambda: [nn.Linear(3, 3)], others=True) == {}


def test_what_is_updated_by_hand_is_trained():
    assert found(lambda: [torch.ones(3, requires_grad=True)], by_hand=True) == {}


def repeats(blocks: nn.Module) -> dict[str, list[float]]:
    """Where a module is said to stand several times, and how often, after a step."""
    with watched() as recording:
        net = nn.Sequential(nn.Linear(6, 6), blocks, nn.Linear(6, 3))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    return {s.site.fqn: [*s.values] for s in recording.run.series("model.repeated")}


def test_a_block_that_stands_in_a_list_three_times_is_seen():
    assert repeats(nn.Sequential(*[nn.Linear(6, 6)] * 3)) == {"1": [3.0]}


def test_blocks_of_their_own_and_a_repeated_activation_are_none():
    relu = nn.ReLU()
    assert repeats(nn.Sequential(nn.Linear(6, 6), relu, nn.Linear(6, 6), relu)) == {}
