"""Mixed precision: the loss scale divided out, skipped steps as events."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import batch, mlp, watched
from traindx.records import EventKind


def adam(params, fused):
    return torch.optim.Adam(params, lr=1e-3, fused=fused)


def scaled_training(fused: bool, *, poisoned: int | None = None, clip: float | None = None):
    """A loop with a GradScaler, one batch of which gives infinite gradients."""
    with watched() as recording:
        net = mlp()
        optimizer = adam(net.parameters(), fused)
        scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
        x, y = batch()
        norms = []
        for step in range(4):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            if step == poisoned:
                loss = loss * float("inf")
            scaler.scale(loss).backward()
            norms.append(net[0].weight.grad.norm().item() / scaler.get_scale())
            if clip is not None:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(net.parameters(), clip)
            scaler.step(optimizer)
            scaler.update()
    return recording, norms


each_kind = pytest.mark.parametrize("fused", [False, True], ids=["plain", "fused"])


@each_kind
def test_the_scale_is_divided_out_of_gradients(fused):
    recording, norms = scaled_training(fused)
    assert recording.values("grad.l2", "0.weight") == pytest.approx(norms, rel=1e-5)
    assert recording.sites("applied_grad.l2") == set()


@each_kind
def test_a_skipped_step_is_an_event_and_no_step(fused):
    recording, _ = scaled_training(fused, poisoned=2)
    assert recording.events(EventKind.AMP_SKIPPED) == [{"optimizer": "Adam"}]
    assert recording.run.events(EventKind.AMP_SKIPPED)[0].step == 2
    assert recording.run.steps == 3
    assert len(recording.series("update.ratio", "0.weight")) == 3


@each_kind
def test_a_skipped_first_step_is_told(fused):
    recording, _ = scaled_training(fused, poisoned=0)
    assert len(recording.events(EventKind.AMP_SKIPPED)) == 1
    assert recording.run.steps == 3


def test_clipping_after_unscaling_shows_as_the_applied_gradient():
    recording, _ = scaled_training(False, clip=1e-3)
    assert max(recording.values("applied_grad.l2", "0.weight")) <= 1.001e-3


def test_the_scale_is_divided_out_of_output_gradients():
    recording, _ = scaled_training(False)
    net = mlp()
    x, y = batch()
    hidden = net[0](x)
    hidden.retain_grad()
    F.cross_entropy(net[2](net[1](hidden)), y).backward()
    norm = hidden.grad.norm().item()
    assert recording.values("output_grad.l2", "0")[0] == pytest.approx(norm, rel=1e-5)


def test_bfloat16_autocast_is_measured_in_the_types_it_runs_in():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        x, y = batch()
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = net(x)
                loss = F.cross_entropy(out, y)
            loss.backward()
            optimizer.step()
    assert recording.series("output.max", "2").last == out.max().item()
    assert recording.series("grad.l2", "0.weight").last == pytest.approx(
        net[0].weight.grad.norm().item(), rel=1e-6
    )


def test_a_disabled_scaler_changes_nothing():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        x, y = batch()
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert recording.run.steps == 3
    assert recording.values("loss")[-1] == loss.item()
    assert recording.events(EventKind.AMP_SKIPPED) == []
