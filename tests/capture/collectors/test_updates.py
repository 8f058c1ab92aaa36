"""How far a step moves each parameter."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.capture.watched import batch, mlp, train, watched
from tests.statistics_ways import way  # noqa: F401
from traindx.capture.collectors import updates


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


def test_a_weight_in_any_order_of_memory_is_measured():
    with watched() as recording:
        torch.manual_seed(0)
        net: Any = nn.Sequential(nn.Conv2d(8, 16, 3), nn.Flatten(), nn.Linear(16, 3))
        net.to(memory_format=torch.channels_last)
        before = net[0].weight.detach().clone()
        train(net, steps=1, data=(torch.randn(4, 8, 3, 3), torch.tensor([0, 1, 2, 0])))
        change = net[0].weight.detach() - before
    assert not net[0].weight.is_contiguous()
    ratio = (change.norm() / before.norm()).item()
    assert recording.values("update.ratio", "0.weight") == pytest.approx([ratio], rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_updates_are_the_same_where_they_are_computed_on_a_device(dtype, monkeypatch):
    found = []
    for on_host in (True, False):
        monkeypatch.setattr(updates, "on_host", lambda _tensor, here=on_host: here)
        with watched() as recording:
            net = mlp().to(dtype)
            nn.init.zeros_(net[2].bias)
            x, y = batch()
            train(net, steps=2, data=(x.to(dtype), y))
        found.append(
            [
                recording.values(quantity, fqn)
                for quantity in ("param.rms", "update.ratio")
                for fqn in ("0.weight", "2.bias")
            ]
        )
    assert found[0][3][0] == math.inf
    tolerance = 1e-5 if dtype is not torch.bfloat16 else 1e-2
    for here, there in zip(*found, strict=True):
        assert here == pytest.approx(there, rel=tolerance)


def test_changes_whose_squares_vanish_in_single_precision_are_measured():
    with watched() as recording:
        net = nn.Linear(6, 3)
        nn.init.constant_(net.weight, 1e-30)
        train(net, steps=1, optimizer=torch.optim.SGD(net.parameters(), lr=1e-29))
    assert recording.values("param.rms", "weight") == pytest.approx([1e-30], rel=1e-5)
    (ratio,) = recording.values("update.ratio", "weight")
    assert 0 < ratio < math.inf


def test_a_user_for_whom_numpy_raises_errors_is_not_disturbed():
    with np.errstate(all="raise"), watched() as recording:
        net: Any = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
        nn.init.zeros_(net[0].bias)
        net[1].eval()
        train(net, steps=3, optimizer=torch.optim.SGD(net.parameters(), lr=1e-38))
        assert np.geterr()["divide"] == "raise"
    assert len(recording.values("update.ratio", "0.weight")) == 3
    assert math.isnan(recording.values("norm.running_gap", "1")[-1])


def test_a_large_table_of_which_a_step_moves_a_few_rows_is_skipped_with_the_reason():
    """A sample of its entries would hold none of them, and say that nothing moved."""
    with watched() as recording:
        net: Any = nn.Sequential(nn.Embedding(4000, 4, sparse=True), nn.Flatten(), nn.Linear(8, 3))
        small = nn.Embedding(50, 8, sparse=True)
        parts = nn.ModuleList([net, small])
        optimizer = torch.optim.SGD(parts.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (net(torch.tensor([[1, 7]])).sum() + small(torch.tensor([3])).sum()).backward()
            optimizer.step()
    assert {site.split(".")[0] for site in recording.sites("update.ratio")} == {"0", "1"}
    assert not recording.values("update.ratio", "0.0.weight")
    assert "sparse" in recording.skips()["0.0.weight", "param"]
    assert all(recording.values("update.ratio", "1.weight"))


class Resizing(torch.optim.SGD):
    """An optimizer whose step exchanges the data of one parameter, and cuts off some of another."""

    def step(self, closure: Any = None) -> Any:
        super().step(closure)
        params = self.param_groups[0]["params"]
        params[1].data = params[1].data.clone()
        params[3].data = params[3].data[:2]


def test_of_a_parameter_that_a_step_resizes_no_change_is_told_and_of_the_others_it_is():
    with watched() as recording:
        net = mlp()
        before = [param.detach().clone() for param in net.parameters()]
        train(net, steps=1, optimizer=Resizing(net.parameters(), lr=0.1))
        changes = [
            ((now - old).norm() / old.norm()).item()
            for now, old in zip([*net.parameters()][:3], before, strict=False)
        ]
    fqns = ["0.weight", "0.bias", "2.weight"]
    assert recording.sites("update.ratio") == {*fqns}
    found = [recording.values("update.ratio", fqn)[0] for fqn in fqns]
    assert found == pytest.approx(changes, rel=1e-5)


def test_optimizers_whose_steps_lie_in_one_another_are_told_apart():
    with watched() as recording:
        net = mlp()
        before = {fqn: param.detach().clone() for fqn, param in net.named_parameters()}
        inner, outer = (torch.optim.SGD(part.parameters(), lr=0.1) for part in (net[0], net[2]))
        x, y = batch()

        def closure() -> Any:
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            inner.step()
            return loss

        outer.step(closure)
        changes = {
            fqn: ((param.detach() - before[fqn]).norm() / before[fqn].norm()).item()
            for fqn, param in net.named_parameters()
        }
    found = {fqn: recording.values("update.ratio", fqn) for fqn in changes}
    assert found == {fqn: pytest.approx([change], rel=1e-5) for fqn, change in changes.items()}


def test_no_weights_are_kept_alive_by_a_step_that_fails():
    class Failing(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            raise RuntimeError("no")

    with watched():
        memory = np.zeros((3, 6), np.float32)
        alive = weakref.ref(memory)
        net = nn.Linear(6, 3)
        net.weight.data = torch.from_numpy(memory)
        with pytest.raises(RuntimeError, match="no"):
            train(net, steps=1, optimizer=Failing(net.parameters()))
        del net, memory
        gc.collect()
        assert alive() is None
