"""Watching keeps nothing of the training alive."""

from __future__ import annotations

import gc

import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.test_taps import hooks_left
from tests.capture.watched import batch, watched


def net_with_norms() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Linear(8, 3)
    )


def live_tensors() -> int:
    gc.collect()
    return sum(type(held) in (torch.Tensor, nn.Parameter) for held in gc.get_objects())


def tensors_after_training(steps: int = 50) -> int:
    """How many more tensors live after the last of so many steps than before the first."""
    before = live_tensors()
    net = net_with_norms()
    optimizer = torch.optim.Adam(net.parameters())
    x, y = batch()
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    assert not hooks_left(net, optimizer)
    return live_tensors() - before


def test_as_many_tensors_live_after_fifty_watched_steps_as_after_bare_ones():
    bare = tensors_after_training()
    with watched():
        measured = tensors_after_training()
    assert (
        measured - bare <= 3 + 1 + 1 + 1
    )  # a norm's buffers and their first state, entries of a gradient, and a ReLU's active units


def test_no_tensor_is_left_once_watching_ends():
    with watched():
        tensors_after_training()
    before = live_tensors()
    with watched():
        tensors_after_training()
    assert live_tensors() == before


def test_the_number_of_live_tensors_does_not_grow_with_the_steps():
    with watched():
        assert tensors_after_training(60) == tensors_after_training(20)
