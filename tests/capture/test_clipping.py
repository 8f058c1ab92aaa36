"""When gradients are clipped, and by how much."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import batch, mlp, watched

Clip = Callable[[], Any]


def late(net, optimizer, clip: Clip):
    optimizer.zero_grad()
    F.cross_entropy(net(batch()[0]), batch()[1]).backward()
    optimizer.step()
    clip()


def in_time(net, optimizer, clip: Clip):
    optimizer.zero_grad()
    F.cross_entropy(net(batch()[0]), batch()[1]).backward()
    clip()
    optimizer.step()


def cleared_first(net, optimizer, clip: Clip):
    F.cross_entropy(net(batch()[0]), batch()[1]).backward()
    clip()
    optimizer.step()
    optimizer.zero_grad()


def accumulated(net, optimizer, clip: Clip):
    optimizer.zero_grad()
    for _ in range(3):
        F.cross_entropy(net(batch()[0]), batch()[1]).backward()
        clip()
    optimizer.step()


def trained(turn, *, largest: float = 0.1, every: int | None = 1, steps: int = 5):
    with watched(every) as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(steps):
            turn(net, optimizer, lambda: nn.utils.clip_grad_norm_(net.parameters(), largest))
    return recording


def test_clipping_after_the_step_is_late():
    assert trained(late).values("clip.late") == [1.0] * 4


def test_clipping_after_the_step_is_late_where_not_every_step_is_measured():
    assert sum(trained(late, every=8, steps=40).values("clip.late")) > 0


@pytest.mark.parametrize("turn", [in_time, cleared_first, accumulated])
@pytest.mark.parametrize("every", [1, 8])
def test_clipping_before_the_step_is_in_time(turn, every):
    values = trained(turn, every=every, steps=20).values("clip.late")
    assert values
    assert set(values) == {0.0}


@pytest.mark.parametrize("largest", [math.inf, 1e9])
def test_asking_for_the_norm_is_no_clipping(largest):
    assert trained(late, largest=largest).values("clip.late") == []


def test_the_ratio_is_that_of_the_norm_to_the_largest():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        norms: list[float] = []
        for _ in range(3):
            in_time(
                net,
                optimizer,
                lambda: norms.append(float(nn.utils.clip_grad_norm_(net.parameters(), 0.1))),
            )
    assert recording.values("clip.ratio") == [norm / 0.1 for norm in norms]


def scaled(*, unscale: bool = False, by_scale: bool = False, own_step: bool = False):
    """The shares of calls that found scaled gradients."""
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(net(batch()[0]), batch()[1])).backward()
            if unscale:
                scaler.unscale_(optimizer)
            if own_step:
                for param in net.parameters():
                    param.grad /= scaler.get_scale()
            largest = scaler.get_scale() if by_scale else 1.0
            nn.utils.clip_grad_norm_(net.parameters(), largest)
            if own_step:
                optimizer.step()
            else:
                scaler.step(optimizer)
                scaler.update()
    return recording.values("clip.scaled")


def test_clipping_before_unscaling_is_seen_once_the_scaler_has_stepped():
    assert scaled() == [0.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("way", ["unscale", "by_scale", "own_step"])
def test_clipping_what_was_unscaled_or_by_a_scaled_bound_is_right(way):
    assert scaled(**{way: True}) == [0.0] * 4


def test_the_functions_are_as_before_afterwards():
    before = nn.utils.clip_grad_norm_
    with watched():
        assert nn.utils.clip_grad_norm_ is not before
    assert nn.utils.clip_grad_norm_ is before
