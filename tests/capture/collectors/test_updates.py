"""How far a step moves each parameter."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from tests.capture.watched import mlp, train, watched


def test_an_update_is_the_change_of_the_parameter():
    with watched() as recording:
        net = mlp()
        before = net[0].weight.detach().clone()
        train(net, steps=1)
        change = net[0].weight.detach() - before
    ratio = (change.norm() / before.norm()).item()
    assert recording.values("update.ratio", "0.weight") == pytest.approx([ratio], rel=1e-5)


def test_the_parameter_is_measured_before_the_step():
    with watched() as recording:
        net = mlp()
        rms = net[0].weight.detach().double().square().mean().sqrt().item()
        train(net, steps=1)
    assert recording.values("param.rms", "0.weight") == pytest.approx([rms], rel=1e-6)


def test_a_parameter_that_starts_at_zero_has_an_infinite_ratio():
    with watched() as recording:
        net = mlp()
        nn.init.zeros_(net[2].bias)
        train(net, steps=2)
    first, second = recording.values("update.ratio", "2.bias")
    assert math.isinf(first)
    assert math.isfinite(second)


def test_a_large_parameter_is_sampled_to_within_a_few_percent():
    with watched() as recording:
        torch.manual_seed(0)
        net = nn.Linear(512, 256)
        before = net.weight.detach().clone()
        train(net, steps=1, data=(torch.randn(64, 512), torch.randint(0, 256, (64,))))
        ratio = ((net.weight.detach() - before).norm() / before.norm()).item()
    rms = before.square().mean().sqrt().item()
    assert recording.values("param.rms", "weight") == pytest.approx([rms], rel=0.05)
    assert recording.values("update.ratio", "weight") == pytest.approx([ratio], rel=0.1)


def test_a_step_that_moves_nothing_has_update_zero():
    with watched() as recording:
        net = mlp()
        train(net, steps=2, optimizer=torch.optim.SGD(net.parameters(), lr=0.0))
    assert recording.values("update.ratio", "0.weight") == [0.0, 0.0]


def test_half_precision_updates_are_measured_in_full_precision():
    with watched() as recording:
        net = mlp().bfloat16()
        from tests.capture.watched import batch

        x, y = batch()
        train(net, steps=1, data=(x.bfloat16(), y))
    assert recording.values("update.ratio", "0.weight")[0] > 0


def test_parameters_that_cannot_be_measured_are_skipped():
    class Phase(nn.Module):
        def __init__(self):
            super().__init__()
            self.phase = nn.Parameter(torch.ones(3, dtype=torch.complex64))
            self.layer = nn.Linear(6, 3)

        def forward(self, x):
            return self.layer(x) * self.phase.real

    with watched() as recording:
        train(Phase())
    assert "has no order" in recording.skips()["phase", "param"]
    assert recording.sites("update.ratio") == {"layer.weight", "layer.bias"}
