"""Copies of a trained model, compared with it where they are evaluated."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from tests.capture.watched import Recording, train, watched
from traindx.records import EventKind

X = 3 * torch.randn(40, 6, generator=torch.Generator().manual_seed(0)) + 1


def build() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 1))


def fit(net: nn.Module, steps: int = 3) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        net(X).square().mean().backward()
        optimizer.step()


def evaluate(net: nn.Module, times: int = 1) -> None:
    net.eval()
    with torch.no_grad():
        for _ in range(times):
            net(X)


def comparisons(recording: Recording) -> list[dict[str, object]]:
    return recording.events(EventKind.COPY)


def test_an_exact_copy_is_equal_in_all():
    with watched() as recording:
        net = build()
        fit(net)
        evaluate(copy.deepcopy(net))
    (found,) = comparisons(recording)
    assert found["of"] == recording.model().name
    assert (found["parameters"], found["equal"], found["differing"]) == (6, 6, [])
    assert (found["distance"], found["norms"], found["gap"]) == (0.0, 1, 0.0)
    assert found["counted"] == 3


def test_a_copy_of_the_parameters_alone_has_initial_statistics():
    with watched() as recording:
        net, loaded = build(), build()
        fit(net)
        loaded.load_state_dict(dict(net.named_parameters()), strict=False)
        evaluate(loaded)
    norm = net[1]
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    ratio = ((norm.running_var + norm.eps) / (1 + norm.eps)).sqrt()
    gap = (norm.running_mean**2 / (1 + norm.eps) + (ratio - 1) ** 2).mean().sqrt()
    (found,) = comparisons(recording)
    assert (found["equal"], found["counted"], found["norm"]) == (6, 0, "1")
    assert math.isclose(float(str(found["gap"])), gap.item(), rel_tol=1e-5)


def test_what_was_not_loaded_is_named():
    with watched() as recording:
        net = build()
        fit(net)
        other = copy.deepcopy(net)
        torch.nn.init.ones_(other.get_parameter("3.weight"))
        evaluate(other)
    (found,) = comparisons(recording)
    assert (found["equal"], found["differing"]) == (5, ["3.weight"])
    weight = net.get_parameter("3.weight")
    distance = ((1 - weight).norm() / weight.norm()).item()
    assert math.isclose(float(str(found["distance"])), distance, rel_tol=1e-5)


def test_an_average_in_a_wrapper_is_known():
    with watched() as recording:
        net = build()
        average = AveragedModel(net)
        fit(net)
        average.update_parameters(net)
        evaluate(average)
    (found,) = comparisons(recording)
    assert (found["parameters"], found["norms"]) == (6, 1)


@pytest.mark.parametrize("other", [nn.Linear(6, 5), nn.Sequential(nn.Linear(6, 4))])
def test_other_models_are_no_copies(other: nn.Module):
    with watched() as recording:
        fit(build())
        evaluate(other)
    assert comparisons(recording) == []


def test_the_trained_model_and_a_copy_in_train_mode_are_not_compared():
    with watched() as recording:
        net = build()
        fit(net)
        evaluate(net)
        other = copy.deepcopy(net).train()
        with torch.no_grad():
            other(X)
    assert comparisons(recording) == []


def test_a_copy_that_is_called_again_and_again_is_looked_at_ever_more_rarely():
    with watched() as recording:
        net = build()
        fit(net)
        evaluate(copy.deepcopy(net), times=40)
    assert len(comparisons(recording)) == 4 + 3  # then the 8th, 16th and 32nd


def test_comparing_changes_neither_model():
    net, other = build(), build()
    fit(net)
    before = [value.clone() for value in (*net.state_dict().values(), *other.state_dict().values())]
    state = torch.get_rng_state()
    with watched():
        fit(net, steps=0)
        evaluate(other)
    after = [*net.state_dict().values(), *other.state_dict().values()]
    assert all(map(torch.equal, before, after))
    assert torch.equal(state, torch.get_rng_state())


def test_modules_that_are_built_with_other_numbers_are_named():
    with watched() as recording:
        net, other = build(), build()
        net.insert(1, nn.LayerNorm(5, eps=1e-5))
        other.insert(1, nn.LayerNorm(5, eps=1e-6))
        fit(net)
        other.load_state_dict(net.state_dict())
        norm = other[2]
        assert isinstance(norm, nn.BatchNorm1d)
        norm.momentum = 0.3  # which matters in training alone
        evaluate(other)
    (first,) = comparisons(recording)
    assert first["settings"] == ["1.eps: 1e-05, 1e-06"]
    assert first["equal"] == first["parameters"]


def test_a_replica_that_is_trained_beside_the_model_is_told_as_one():
    with watched() as recording:
        net = build()
        other = copy.deepcopy(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            net(X).square().mean().backward()
            other(X + 50).square().mean().backward()
            optimizer.step()
            other.load_state_dict(dict(net.named_parameters()), strict=False)
        evaluate(net)
    (found,) = comparisons(recording)
    assert (found["replica"], found["parameters"], found["equal"]) == (True, 6, 6)
    assert float(str(found["gap"])) > 0.5


def layers(net: nn.Sequential) -> tuple[nn.Linear, nn.BatchNorm1d]:
    first, norm, *_ = net
    assert isinstance(first, nn.Linear)
    assert isinstance(norm, nn.BatchNorm1d)
    return first, norm


def met(recording: Recording) -> list[dict[str, object]]:
    return recording.events(EventKind.MET)


def test_what_an_average_meets_is_compared_with_its_statistics():
    with watched() as recording:
        net = build()
        fit(net, 60)
        average = copy.deepcopy(net)
        first, norm = layers(average)
        with torch.no_grad():
            first.weight.mul_(2)
        evaluate(average)
    (found,) = met(recording)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    shown = (first(X) - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    squares = shown.mean(0).square() + (shown.std(0, correction=0) - 1).square()
    assert found["gap"] == pytest.approx(squares.mean().sqrt().item(), rel=1e-3)
    assert (found["norm"], found["values"], found["of"]) == ("1", 40, recording.model().name)


def test_a_channel_that_is_shut_or_constant_is_left_out():
    with watched() as recording:
        net = build()
        fit(net, 60)
        average = copy.deepcopy(net)
        first, norm = layers(average)
        assert norm.running_var is not None
        with torch.no_grad():
            first.bias.add_(torch.tensor([0.0, 0.0, 0.0, 50.0, 50.0]))
            norm.weight[3] = 0
            norm.running_var[4] = 0
        evaluate(average)
    (found,) = met(recording)
    assert float(str(found["gap"])) < 1


def test_a_model_without_running_statistics_meets_nothing():
    with watched() as recording:
        net = nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 1))
        fit(net)
        evaluate(copy.deepcopy(net))
    assert met(recording) == []
    assert len(comparisons(recording)) == 1


def test_an_evaluation_that_fails_is_not_heard_in_the_next():
    with watched() as recording:
        net = build()
        fit(net)
        average = copy.deepcopy(net)
        with pytest.raises(RuntimeError), torch.no_grad():
            average.eval()(torch.randn(3, 7))
        train(net, steps=1, data=(X, torch.zeros(40, 1)), loss=nn.functional.mse_loss)
    assert met(recording) == []
