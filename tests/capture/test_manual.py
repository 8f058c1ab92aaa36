"""Updates written by hand, which call no optimizer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import batch, mlp, watched


def no_grad_subtraction(param):
    with torch.no_grad():
        param -= 0.1 * param.grad


def data_subtraction(param):
    param.data = param.data - 0.1 * param.grad.data


def data_in_place(param):
    param.data.sub_(0.1 * param.grad)


def copy_into(param):
    with torch.no_grad():
        param.copy_(param - 0.1 * param.grad)


each_way = pytest.mark.parametrize(
    "update", [no_grad_subtraction, data_subtraction, data_in_place, copy_into]
)


@each_way
def test_a_hand_written_update_of_modules_counts_as_a_step(update):
    with watched() as recording:
        net = mlp()
        x, y = batch()
        for _ in range(4):
            F.cross_entropy(net(x), y).backward()
            for param in net.parameters():
                update(param)
                param.grad = None
    assert recording.run.steps == 4
    assert recording.models == {"net"}
    assert len(recording.values("loss")) == 4
    assert "parameters change without" in recording.notes()
    assert all(ratio > 0 for ratio in recording.values("update.ratio", "0.weight"))


@each_way
def test_a_hand_written_update_of_raw_tensors_counts_as_a_step(update):
    with watched() as recording:
        torch.manual_seed(0)
        w, b = torch.randn(6, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
        x, _ = batch()
        for _ in range(4):
            (x @ w + b - 1).square().mean().backward()
            for param in (w, b):
                update(param)
                param.grad = None
    assert recording.run.steps == 4
    assert recording.models == {"parameters"}
    assert recording.sites("grad.l2") == {"w", "b"}
    assert len(recording.series("update.ratio", "w")) == 4


def test_the_measured_update_is_the_one_that_was_made():
    with watched() as recording:
        w: Any = torch.ones(10, requires_grad=True)
        for _ in range(2):
            (w * 2).sum().backward()
            with torch.no_grad():
                gradient: Any = w.grad
                w -= 0.25 * gradient
            w.grad = None
    assert recording.values("param.rms", "w") == [1.0, 0.5]
    assert recording.values("update.ratio", "w") == [0.5, 1.0]
    assert recording.values("grad.rms", "w") == [2.0, 2.0]


def test_an_optimizer_of_raw_tensors_trains_them():
    with watched() as recording:
        w = torch.ones(6, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.25)
        for _ in range(3):
            optimizer.zero_grad()
            (w * 2).sum().backward()
            optimizer.step()
    assert recording.models == {"parameters"}
    assert recording.values("param.rms", "w") == [1.0, 0.5, 0.0]


def test_backward_without_an_update_is_no_step():
    with watched() as recording:
        net = mlp()
        x, y = batch()
        for _ in range(3):
            F.cross_entropy(net(x), y).backward()
    assert recording.run.steps == 0
    assert recording.run.header["backwards"] == 3
    assert recording.models == set()


def test_micro_batches_before_a_hand_written_update_are_one_step():
    with watched() as recording:
        net = mlp()
        x, y = batch()
        for _ in range(3):
            for rows in (slice(0, 2), slice(2, 5)):
                F.cross_entropy(net(x[rows]), y[rows]).backward()
            with torch.no_grad():
                param: Any
                for param in net.parameters():
                    param -= 0.1 * param.grad
                    param.grad = None
    assert recording.run.steps == 3
    assert recording.values("backwards") == [2.0, 2.0, 2.0]


def test_an_input_with_gradient_is_no_trained_parameter():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        for _ in range(3):
            probe = x.clone().requires_grad_()
            optimizer.zero_grad()
            F.cross_entropy(net(probe), y).backward()
            optimizer.step()
    assert recording.models == {"net"}


def test_an_optimizer_that_comes_after_an_update_by_hand_takes_over():
    with watched() as recording:
        net: Any = nn.Linear(6, 3)
        x, y = batch()
        for _ in range(2):
            F.cross_entropy(net(x), y).backward()
            with torch.no_grad():
                param: Any
                for param in net.parameters():
                    param -= 0.1 * param.grad
                    param.grad = None
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
    assert recording.run.steps == 5
    assert len(recording.series("update.ratio", "weight")) == 5
