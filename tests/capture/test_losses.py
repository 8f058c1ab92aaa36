"""The loss of every step, apart by the models it reaches, and what went into it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture.watched import batch, mlp, one, train, watched


def test_the_loss_of_every_step_is_noted_at_any_cadence():
    with watched(every=7) as recording:
        net = mlp()
        losses = train(net, steps=20)
    assert recording.values("loss") == losses
    assert recording.series("loss").steps.tolist() == list(range(20))


def test_a_loss_that_is_not_finite_is_noted_as_it_is():
    with watched(every=5) as recording:
        net = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for value in (1.0, math.inf, math.nan, 1.0):
            optimizer.zero_grad()
            (net(torch.ones(1, 1)) * 0 + value).sum().backward()
            optimizer.step()
    first, second, third, last = recording.values("loss")
    assert (first, second, last) == (1.0, math.inf, 1.0)
    assert math.isnan(third)


def test_the_losses_of_micro_batches_are_averaged():
    with watched() as recording:
        net = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        for _ in range(2):
            optimizer.zero_grad()
            for value in (1.0, 2.0, 6.0):
                (net(torch.ones(1, 1)) * 0 + value).sum().backward()
            optimizer.step()
    assert recording.values("loss") == [3.0, 3.0]
    assert recording.values("backwards") == [3.0, 3.0]


def test_several_losses_in_a_step_are_kept_apart_by_the_models_they_reach():
    with watched() as recording:
        first, second = nn.Linear(6, 1), nn.Linear(6, 1)
        optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.0)
        x, _ = batch()
        for _ in range(2):
            optimizer.zero_grad()
            (first(x) * 0 + 1).mean().backward()
            (second(x) * 0 + 2).mean().backward()
            (first(x) * 0 + second(x) * 0 + 3).mean().backward()
            optimizer.step()
    by_site = {series.site.model: series.last for series in recording.run.series("loss")}
    assert by_site == {"first": 1.0, "second": 2.0, "first+second": 3.0}


def test_a_loss_that_reaches_only_the_last_part_of_a_model_reaches_that_model():
    with watched() as recording:
        trunk = nn.ModuleDict({"body": nn.Linear(6, 4), "probe": nn.Linear(4, 1)})
        optimizer = torch.optim.SGD(trunk.parameters(), lr=0.1)
        x, _ = batch()
        for _ in range(3):
            optimizer.zero_grad()
            features = trunk["body"](x)
            features.square().mean().backward()
            trunk["probe"](features.detach()).square().mean().backward()
            optimizer.step()
    assert {series.site.model for series in recording.run.series("loss")} == {"trunk"}


def test_a_scaled_loss_is_noted_unscaled():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        x, y = batch()
        true = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            true.append(loss.item())
    assert recording.values("loss") == pytest.approx(true, rel=1e-6)


def facts_of(loss: Any, output: Any = None, target: Any = None, classes: int = 3) -> Any:
    """What is recorded of a loss between a small model and a target."""
    x, y = batch(classes=classes)
    target = y if target is None else target
    with watched() as recording:
        net = nn.Linear(6, classes)
        model = net if output is None else nn.Sequential(net, output)
        train(model, data=(x, target), loss=loss)
    return one(recording.run.losses.values())


def test_cross_entropy_on_logits_has_its_logits_and_classes():
    facts = facts_of(F.cross_entropy)
    assert facts.loss == "NllLossBackward0"
    assert facts.prediction.operation == "AddmmBackward0"
    assert facts.prediction.shape == (5, 3)
    assert facts.prediction.min < 0 < facts.prediction.max
    assert not facts.prediction.rows_sum_to_one
    assert (facts.target.dtype, facts.target.shape) == ("int64", (5,))
    assert facts.target.integers
    assert (facts.target.min, facts.target.max) == (0.0, 2.0)


def test_cross_entropy_on_probabilities_is_told_by_name_and_by_value():
    facts = facts_of(F.cross_entropy, nn.Softmax(dim=1))
    assert facts.prediction.operation == "SoftmaxBackward0"
    assert facts.prediction.rows_sum_to_one


def test_nll_loss_behind_a_log_softmax_of_the_models_has_the_logits():
    facts = facts_of(F.nll_loss, nn.LogSoftmax(dim=1))
    assert facts.loss == "NllLossBackward0"
    assert facts.prediction.operation == "AddmmBackward0"


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_mse_between_shapes_that_broadcast_shows_both_shapes():
    facts = facts_of(F.mse_loss, target=torch.rand(5), classes=1)
    assert facts.loss == "MseLossBackward0"
    assert (facts.prediction.shape, facts.target.shape) == ((5, 1), (5,))
    assert facts.prediction.operation == "AddmmBackward0"


def test_mse_has_prediction_and_target():
    facts = facts_of(F.mse_loss, target=torch.full((5, 3), 255.0))
    assert facts.prediction.shape == facts.target.shape == (5, 3)
    assert facts.target.max == 255.0
    assert facts.target.integers
    assert not facts.prediction.integers


def test_binary_cross_entropy_on_a_sigmoid_names_it():
    facts = facts_of(F.binary_cross_entropy, nn.Sigmoid(), torch.ones(5, 3))
    assert facts.loss == "BinaryCrossEntropyBackward0"
    assert facts.prediction.operation == "SigmoidBackward0"
    assert 0 < facts.prediction.min <= facts.prediction.max < 1


def test_binary_cross_entropy_with_logits_has_the_logits():
    facts = facts_of(F.binary_cross_entropy_with_logits, target=torch.ones(5, 3))
    assert facts.loss == "BinaryCrossEntropyWithLogitsBackward0"
    assert facts.prediction.operation == "AddmmBackward0"
    assert facts.prediction.shape == (5, 3)


def test_binary_cross_entropy_with_logits_on_a_sigmoid_shows_probabilities():
    loss, target = F.binary_cross_entropy_with_logits, torch.ones(5, 3)
    facts = facts_of(loss, nn.Sigmoid(), target)
    assert facts.prediction.operation == "SigmoidBackward0"
    assert facts.prediction.min > 0


def test_cross_entropy_over_pixels_is_known():
    with watched() as recording:
        net = nn.Conv2d(1, 3, 1)
        train(net, data=(torch.randn(2, 1, 4, 4), torch.zeros(2, 4, 4, dtype=torch.long)))
    facts: Any = one(recording.run.losses.values())
    assert facts.loss == "NllLoss2DBackward0"
    assert facts.prediction.shape == (2, 3, 4, 4)


def test_of_a_loss_written_by_hand_nothing_is_said():
    with watched() as recording:
        net = mlp()
        train(net, loss=lambda out, y: (out - F.one_hot(y, 3)).abs().pow(1.5).sum())
    assert recording.run.losses == {}
    assert len(recording.values("loss")) == 3


def test_a_weighted_sum_of_losses_is_seen_through():
    facts = facts_of(lambda out, y: 0.5 * F.cross_entropy(out, y) + 1e-4 * out.square().sum())
    assert facts.loss == "NllLossBackward0"
    assert facts.operation == "AddBackward0"


def test_a_backward_of_a_vector_notes_no_loss():
    with watched() as recording:
        net = mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            out = net(batch()[0])
            out.backward(torch.ones_like(out))
            optimizer.step()
    assert recording.values("loss") == []
    assert recording.run.steps == 2
    assert len(recording.series("grad.l2", "0.weight")) == 2
