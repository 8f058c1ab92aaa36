"""What a model is given, by its first floating-point tensor."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.capture.watched import batch, mlp, train, watched
from traindx.records import Point


class Taking(nn.Module):
    """A linear layer on whatever is found in its arguments."""

    def __init__(self, find):
        super().__init__()
        self.find = find
        self.layer = nn.Linear(6, 3)

    def forward(self, *args, **kwargs):
        return self.layer(self.find(args, kwargs))


def steps(net, *args, **kwargs):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        net(*args, **kwargs).square().mean().backward()
        optimizer.step()


def test_an_input_has_the_statistics_of_the_tensor_given():
    x = 5 + 3 * batch()[0]
    with watched() as recording:
        train(mlp(), data=(x, batch()[1]), steps=2)
    stats = recording.last_stats(Point.INPUT, "")
    assert (stats.count, stats.min, stats.max) == (x.numel(), x.min().item(), x.max().item())
    assert recording.values("input.mean", "") == pytest.approx([x.mean().item()] * 2)
    assert recording.sites("input.std") == {""}


def test_the_first_floating_point_tensor_counts_wherever_it_is():
    x, ids = batch()[0], torch.ones(5, dtype=torch.long)
    calls = [
        ((ids, x, x + 1), {}, lambda args, _: args[1]),
        ((ids, {"mask": ids > 0, "x": [None, x]}), {}, lambda args, _: args[1]["x"][1]),
        ((), {"ids": ids, "x": x}, lambda _, kwargs: kwargs["x"]),
    ]
    for args, kwargs, find in calls:
        with watched() as recording:
            net = Taking(find)
            steps(net, *args, **kwargs)
        assert recording.last_stats(Point.INPUT, "").max == x.max().item()
        assert recording.values("batch.size") == [5.0] * 2


def test_integers_alone_are_no_input_to_measure():
    with watched() as recording:
        net = nn.Sequential(nn.Embedding(4, 3), nn.Flatten())
        steps(net, torch.ones(5, 2, dtype=torch.long))
    assert recording.sites("input.mean") == set()
    assert recording.skips() == {}


def test_an_input_is_measured_before_the_model_changes_it():
    class Rude(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)

        def forward(self, x):
            return self.layer(x.zero_())

    with watched() as recording:
        train(Rude(), steps=1)
    assert recording.last_stats(Point.INPUT, "").max > 0


def test_the_inputs_of_micro_batches_merge():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for part in batch(8)[0].split(4):
            net(part).square().mean().backward()
        optimizer.step()
    assert recording.last_stats(Point.INPUT, "").count == 8 * 6


def test_a_sparse_input_is_told_as_skipped():
    with watched() as recording:
        net = Taking(lambda args, _: args[0].to_dense())
        steps(net, batch()[0].to_sparse())
    assert "layout sparse_coo" in recording.skips()["", "input"]


def test_the_input_of_an_evaluation_does_not_count():
    with watched() as recording:
        net = mlp()
        train(net, steps=1)
        net.eval()
        net(1000 + batch()[0])  # with gradients enabled, but nothing is trained on it
        net.train()
        train(net, steps=1)
    assert recording.series("input.max", "").last < 1000
