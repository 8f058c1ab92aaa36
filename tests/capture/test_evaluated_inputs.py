"""What models are given in evaluation, beside what they were trained on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.capture.watched import Recording, mlp, train, watched
from traindx.capture.evaluated_inputs import compare
from traindx.records import EventKind

X = 2 * torch.randn(80, 12, generator=torch.Generator().manual_seed(0)) + torch.arange(12.0)
Y = torch.arange(80) % 3


def fit(net: nn.Module, x: Tensor = X) -> None:
    train(net, steps=4, data=(x, Y))


def evaluate(_model: nn.Module, x: Tensor, times: int = 1) -> None:
    _model.eval()
    with torch.no_grad():
        for _ in range(times):
            _model(x)
    _model.train()


def comparisons(recording: Recording) -> list[dict[str, object]]:
    return recording.events(EventKind.INPUTS)


def compared(change: Callable[[Tensor], Tensor], *, times: int = 1) -> dict[str, object]:
    """The only comparison of a training on X with an evaluation on what becomes of it."""
    with watched() as recording:
        net = mlp(sizes=(12, 8, 3))
        fit(net)
        evaluate(net, change(X), times)
    (found,) = comparisons(recording)
    return found


def test_the_same_inputs_are_the_same():
    found = compared(lambda x: x)
    assert (found["features"], found["trained"], found["evaluated"]) == (12, 256, 64)
    assert found["ratio"] == pytest.approx(1, abs=1e-5)
    assert found["slope"] == pytest.approx(1, abs=1e-5)
    assert (found["far"], found["shift"]) == (0, pytest.approx(0, abs=1e-5))


def test_another_scale_is_a_line():
    found = compared(lambda x: 0.25 * x + 3)
    assert found["ratio"] == pytest.approx(0.25, rel=1e-4)
    assert found["slope"] == pytest.approx(0.25, rel=1e-4)
    assert found["correlation"] == pytest.approx(1, abs=1e-5)
    assert found["spread"] == pytest.approx(0, abs=1e-4)
    assert found["far"] == 1


def test_what_is_far_away_is_still_measured_exactly():
    found = compared(lambda x: 255 * x + 1e4)
    assert found["ratio"] == pytest.approx(255, rel=1e-3)


def test_of_many_passes_those_of_a_power_of_two_are_looked_at():
    assert compared(lambda x: x, times=9)["evaluated"] == 4 * 64


@pytest.mark.parametrize(
    "x", [torch.zeros(4, 12, dtype=torch.int64), torch.randn(0, 12), torch.randn(4, 3, 12)]
)
def test_inputs_of_another_kind_or_shape_are_not_compared(x: Tensor):
    with watched() as recording:
        net = nn.Sequential(nn.Flatten(0, -2), nn.Linear(12, 3))
        fit(net)
        evaluate(net, x) if x.is_floating_point() else evaluate(nn.Identity(), x)
    assert comparisons(recording) == []


def test_what_another_model_in_training_makes_is_no_input():
    with watched() as recording:
        encoder, head = mlp(sizes=(12, 8, 8)), nn.Linear(8, 3)
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(head(encoder(X)), Y).backward()
            optimizer.step()
        with torch.no_grad():
            head(encoder(X))
    (event,) = recording.run.events(EventKind.INPUTS)
    assert event.site.model == "encoder"


def test_inference_mode_is_compared_like_any_other():
    with watched() as recording:
        net = mlp(sizes=(12, 8, 3))
        fit(net)
        with torch.inference_mode():
            net(X)
        evaluate(net, X)
        fit(net)
    (found,) = comparisons(recording)
    assert found["evaluated"] == 128


def test_columns_of_an_image_are_not_taken_for_all_of_it():
    x = torch.randn(80, 1, 28, 28)
    with watched() as recording:
        net = nn.Sequential(nn.Flatten(), nn.Linear(784, 3))
        fit(net, x)
        evaluate(net, x)
    (found,) = comparisons(recording)
    assert found["features"] == 157  # every fifth pixel: 4 would meet every seventh column alone


def test_features_that_do_not_vary_are_left_out():
    mean, std = np.zeros(4), np.array([1.0, 1.0, 1e-6, 0.0])
    assert compare((mean, std), (mean, 2 * np.ones(4)))["features"] == 2
    assert compare((mean, 0 * std), (mean, std)) == {}
    assert compare((mean, std), (mean, std * np.nan)) == {}


def test_features_that_are_standardized_are_counted():
    ours = np.array([0.0, 0.1, 2.0, 0.0]), np.array([1.0, 1.2, 1.0, 3.0])
    found = compare(ours, (ours[0] + 5, ours[1]))
    assert (found["standard"], found["standard_evaluated"]) == (0.5, 0.0)
    assert found["shift"] == pytest.approx(5 / 1.1, rel=0.1)
