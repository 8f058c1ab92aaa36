"""Gradients as backward leaves them and as the optimizer gets them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import batch, mlp, train, watched
from traindx.capture.collectors.gradients import Gradients
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.capture.transfer import Portion, TorchHost
from traindx.records import Point, Record, one_by_one


def test_a_gradient_is_what_backward_leaves():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        true = []
        for _ in range(3):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            true.append(net[0].weight.grad.double().norm().item())
            optimizer.step()
    assert recording.values("grad.l2", "0.weight") == pytest.approx(true, rel=1e-6)


def test_the_applied_gradient_is_told_where_clipping_changed_it():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        before, after = [], []
        for limit in (1e9, 1e-3, 1e9):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            before.append(net[2].bias.grad.norm().item())
            nn.utils.clip_grad_norm_(net.parameters(), limit)
            after.append(net[2].bias.grad.norm().item())
            optimizer.step()
    assert recording.values("grad.l2", "2.bias") == pytest.approx(before, rel=1e-6)
    applied = recording.series("applied_grad.l2", "2.bias")
    assert applied.steps.tolist() == [1]
    assert applied.last == pytest.approx(after[1], rel=1e-5)


def test_without_clipping_there_is_no_applied_gradient():
    with watched() as recording:
        train(mlp())
    assert recording.sites("applied_grad.l2") == set()


def test_clipping_by_value_is_told():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        for _ in range(2):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            nn.utils.clip_grad_value_(net.parameters(), 1e-4)
            optimizer.step()
    assert max(recording.values("applied_grad.max", "0.weight")) == pytest.approx(1e-4)


def test_accumulated_micro_batches_give_the_gradient_of_their_sum():
    x, y = batch(rows=6)
    parts = (slice(0, 2), slice(2, 4), slice(4, 6))
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        for _ in range(2):
            optimizer.zero_grad()
            for part in parts:
                (F.cross_entropy(net(x[part]), y[part]) / 3).backward()
            optimizer.step()
    whole = mlp()
    F.cross_entropy(whole(x), y).backward()
    for fqn, param in whole.named_parameters():
        norm = param.grad.norm().item()
        assert recording.values("grad.l2", fqn) == pytest.approx([norm] * 2, rel=1e-5)
    assert recording.last_stats(Point.OUTPUT, "0").count == 6 * 8


def test_a_sparse_gradient_is_measured_by_its_stored_rows():
    with watched() as recording:
        net: Any = nn.Sequential(nn.Embedding(50, 4, sparse=True), nn.Flatten(), nn.Linear(8, 3))
        sparse = torch.optim.SparseAdam([net[0].weight])
        dense = torch.optim.SGD(net[2].parameters(), lr=0.1)
        x = torch.tensor([[1, 2], [3, 4], [5, 6]])
        y = torch.tensor([0, 1, 2])
        for _ in range(3):
            sparse.zero_grad()
            dense.zero_grad()
            F.cross_entropy(net(x), y).backward()
            norm = net[0].weight.grad.to_dense().norm().item()
            sparse.step()
            dense.step()
    stats = recording.last_stats(Point.GRAD, "0.weight")
    assert stats.count == 6 * 4
    assert recording.series("grad.l2", "0.weight").last == pytest.approx(norm, rel=1e-6)
    assert recording.series("update.ratio", "0.weight").last >= 0


def test_a_row_that_a_batch_touches_twice_counts_once_in_a_sparse_gradient():
    with watched() as recording:
        table: Any = nn.Embedding(50, 4, sparse=True)
        optimizer = torch.optim.SparseAdam(list(table.parameters()))
        for _ in range(2):
            optimizer.zero_grad()
            table(torch.tensor([1, 1, 1, 7])).square().sum().backward()
            norm = table.weight.grad.to_dense().norm().item()
            optimizer.step()
            assert not table.weight.grad.is_coalesced()
    assert recording.last_stats(Point.GRAD, "weight").count == 2 * 4
    assert recording.series("grad.l2", "weight").last == pytest.approx(norm, rel=1e-6)


def test_parameters_that_are_spread_over_ranks_are_skipped_with_the_reason(tmp_path):
    import torch.distributed.tensor as tensors
    from torch.distributed.device_mesh import init_device_mesh

    distributed = torch.distributed
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/at", rank=0, world_size=1
    )
    try:
        mesh = init_device_mesh("cpu", (1,))
        with watched() as recording:
            net = nn.ModuleDict(
                {"far": nn.Linear(6, 8), "norm": nn.BatchNorm1d(8), "near": nn.Linear(8, 3)}
            )
            for layer in (net["far"], net["norm"]):
                tensors.distribute_module(layer, mesh)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            x, y = batch()
            x = tensors.distribute_tensor(x, mesh, [tensors.Replicate()])
            for _ in range(3):
                optimizer.zero_grad()
                hidden = net["far"](x).relu().full_tensor()
                F.cross_entropy(net["near"](hidden), y).backward()
                optimizer.step()
        assert recording.run.steps == 3
        for place in (
            ("far.weight", "grad"),
            ("far.weight", "param"),
            ("norm.running_mean", "param"),
        ):
            assert recording.skips()[place] == "tensor subclass DTensor"
        assert len(recording.values("grad.l2", "near.weight")) == 3
        assert len(recording.values("update.ratio", "near.weight")) == 3
    finally:
        distributed.destroy_process_group()


def test_gradients_assigned_by_hand_are_measured():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        for _ in range(3):
            params = list(net.parameters())
            gradients = torch.autograd.grad(F.cross_entropy(net(x), y), params)
            for param, gradient in zip(params, gradients, strict=True):
                param.grad = gradient
            optimizer.step()
    assert recording.models == {"net"}
    norm = gradients[0].norm().item()
    assert recording.series("grad.l2", "0.weight").last == pytest.approx(norm, rel=1e-6)
    assert len(recording.series("grad.l2", "0.weight")) == 3
    assert recording.sites("applied_grad.l2") == set()


def test_an_absent_gradient_is_told():
    with watched() as recording:
        net = nn.ModuleDict({"used": nn.Linear(6, 3), "unused": nn.Linear(6, 3)})
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        for _ in range(2):
            optimizer.zero_grad()
            F.cross_entropy(net["used"](x), y).backward()
            optimizer.step()
    assert recording.values("grad.absent", "used.weight") == [0.0, 0.0]
    assert recording.values("grad.absent", "unused.weight") == [1.0, 1.0]


def test_a_parameter_changed_by_lbfgs_closures_is_measured():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.LBFGS(net.parameters(), max_iter=4)
        x, y = batch()

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
    assert recording.run.steps == 3
    assert len(recording.series("grad.l2", "0.weight")) == 3
    assert recording.values("update.ratio", "0.weight")[0] > 0
    assert all(count > 1 for count in recording.values("backwards"))


def test_bfloat16_gradients_are_measured_in_full_precision():
    with watched() as recording:
        net = mlp().bfloat16()
        x, y = batch()
        train(net, data=(x.bfloat16(), y), steps=2)
        norm = net[0].weight.grad.float().norm().item()
    assert recording.series("grad.l2", "0.weight").last == pytest.approx(norm, rel=1e-5)


def test_the_gradient_of_an_output_is_the_one_that_arrives_there():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        optimizer.zero_grad()
        hidden = net[1](net[0](x))
        hidden.retain_grad()
        F.cross_entropy(net[2](hidden), y).backward()
        optimizer.step()
    norm = hidden.grad.norm().item()
    assert recording.series("output_grad.l2", "1").last == pytest.approx(norm, rel=1e-6)


def test_models_that_share_a_trunk_have_its_gradients_each():
    with watched() as recording:
        trunk = nn.Linear(6, 8)
        actor, critic = nn.Sequential(trunk, nn.Linear(8, 3)), nn.Sequential(trunk, nn.Linear(8, 1))
        parameters = {*actor.parameters(), *critic.parameters()}
        optimizer = torch.optim.SGD(list(parameters), lr=0.1)
        x, y = batch()
        for _ in range(3):
            optimizer.zero_grad()
            (F.cross_entropy(actor(x), y) + critic(x).square().mean()).backward()
            optimizer.step()
    assert {len(s) for s in recording.run.series("grad.rms", fqn="0.weight")} == {3}
    held = [s.site.model for s in recording.run.series("update.ratio", fqn="0.weight")]
    assert set(held) <= {s.site.model for s in recording.run.series("grad.rms", fqn="0.weight")}


def test_a_gradient_in_the_place_of_one_that_was_freed_is_another():
    net = nn.Linear(2, 1)
    tracked, recorder = TrackedModel(net, "net"), Recorder()
    tracked.confirmed = True
    gradients = Gradients(recorder)
    for value in range(50):  # CPython gives the address of a freed object to the next
        net.weight.grad = None
        net.weight.grad = torch.full((1, 2), float(value))
        gradients.after_backward(tracked, None)
    items = one_by_one(Portion(recorder.parts(), TorchHost()).items())
    (record,) = [item for item in items if isinstance(item, Record)]
    assert record.stats.max == 49.0
