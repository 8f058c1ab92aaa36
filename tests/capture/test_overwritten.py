"""Weights that are loaded and initialized anew before anything is computed with them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tests.capture.watched import mlp, train, watched


def initialize(net: nn.Module) -> None:
    for param in net.parameters():
        param.data.normal_()


def round_off(net: nn.Module) -> None:
    for param in net.parameters():
        param.data.copy_(param.data.half().float())


def leave(net: nn.Module) -> None:
    """Nothing is done."""


def load_again(net: nn.Module) -> None:
    net.load_state_dict({name: torch.randn_like(v) for name, v in net.state_dict().items()})


def shares(then: Callable[[nn.Module], None], *, trained: bool = False) -> list[float]:
    """What part was overwritten, at each load that was looked at."""
    with watched() as recording:
        net = mlp()
        if trained:
            train(net)
        net.load_state_dict(mlp().state_dict())
        then(net)
        train(net)
    return [v for series in recording.run.series("load.overwritten") for v in series.values]


@pytest.mark.parametrize("trained", [False, True])
def test_an_initialization_after_loading_is_seen(trained: bool):
    assert shares(initialize, trained=trained) == [1.0]


@pytest.mark.parametrize("then", [leave, round_off, load_again])
def test_what_is_loaded_and_kept_is_not_overwritten(then: Callable[[nn.Module], None]):
    assert shares(then) == [0.0]
