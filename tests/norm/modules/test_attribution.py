"""Shares of the output's change: by hand where it is linear, summing to 1 with the interaction."""

from __future__ import annotations

import copy
import random
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from traindx.errors import UsageError
from traindx.norm.modules import batch_norm
from traindx.norm.modules.attribution import attribute


class Sum(nn.Module):
    """a BN1(x) + b BN2(x) in one channel each: what either layer changes adds up exactly."""

    def __init__(self, a: float, b: float) -> None:
        super().__init__()
        self.first, self.second = nn.BatchNorm1d(1, eps=0.5), nn.BatchNorm1d(1, eps=0.5)
        self.a, self.b = a, b

    def forward(self, x: Tensor) -> Tensor:
        return self.a * self.first(x) + self.b * self.second(x)


def batch() -> Tensor:
    return torch.tensor([[-1.0], [1.0], [-1.0], [1.0]])  # mean 0, variance 1


def layers(model: nn.Module) -> dict[str, Any]:
    return {n: m for n, m in model.named_modules() if isinstance(m, nn.BatchNorm1d)}


def test_the_shares_of_a_sum_follow_by_hand() -> None:
    model = cast(Any, Sum(2.0, 1.0))
    model.first.eps = model.second.eps = 1e-12
    model.first.running_var.fill_(4.0)  # evaluation gives x / 2: switching adds a x / 2
    model.second.running_var.fill_(0.25)  # evaluation gives 2 x: switching takes b x away
    found = attribute(model, (batch(),), layers(model))
    # D = 2·x/2 - 1·x = 0 would cancel; with a = 2 they are x and -x.
    assert found.change == 0
    model.a = 4.0  # d1 = 2 x, d2 = -x, D = x; evaluation gives 2 x + 2 x
    found = attribute(model, (batch(),), layers(model))
    assert found.shares == pytest.approx({"first": 2.0, "second": -1.0}, rel=1e-5)
    assert found.rest == pytest.approx(0, abs=1e-5)
    assert found.change == pytest.approx(1 / 4, rel=1e-5)


class Product(Sum):
    """BN1(x) BN2(x): what either layer changes multiplies."""

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x) * self.second(x)


def test_what_layers_make_together_only_is_the_rest() -> None:
    model = Product(1, 1)
    model.first.eps = model.second.eps = 1e-12
    for layer in layers(model).values():
        layer.running_var.fill_(4.0)
    # Evaluation: x²/4. One switched: x²/2, so d = 1/4; both: 1, so D = 3/4.
    found = attribute(model, (batch(),), layers(model))
    assert found.shares == pytest.approx({"first": 1 / 3, "second": 1 / 3}, rel=1e-5)
    assert found.rest == pytest.approx(1 / 3, rel=1e-5)
    assert found.change == pytest.approx(3.0, rel=1e-5)


def stack() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(0.5), nn.Linear(6, 5),
        nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3),
    )  # fmt: skip


def test_the_shares_are_those_of_an_independent_computation_and_sum_to_1_with_the_rest() -> None:
    model, x = stack(), torch.randn(32, 4)
    model[1].running_mean.fill_(0.4)
    model[5].running_var.fill_(2.0)
    found = attribute(model, (x,), layers(model))

    def output(*switched: int) -> Tensor:
        twin = copy.deepcopy(model).eval()
        for i in switched:
            twin[i].train()
        with torch.no_grad():
            return twin(x).double()

    whole = output(1, 5) - output()
    for i in (1, 5):
        expected = float(((output(i) - output()) * whole).sum() / whole.square().sum())
        assert found.shares[str(i)] == pytest.approx(expected, rel=1e-6)
    assert sum(found.shares.values()) + found.rest == pytest.approx(1, abs=1e-12)
    assert found.change == pytest.approx(float(whole.norm() / output().norm()), rel=1e-6)


def test_a_layer_with_the_statistics_of_the_batch_has_no_share() -> None:
    model, x = stack(), torch.randn(32, 4)
    with torch.no_grad():
        inner = model[0](x)
    model[1].running_mean.copy_(inner.mean(0))
    model[1].running_var.copy_(inner.var(0, correction=0))
    found = attribute(model, (x,), layers(model))
    assert found.shares["1"] == pytest.approx(0, abs=1e-5)
    assert found.shares["5"] == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("training", [True, False])
def test_the_model_comes_back_as_it_was(training: bool) -> None:
    model = stack().train(training)
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    attribute(
        model, (torch.randn(8, 4, generator=torch.Generator().manual_seed(1)),), layers(model)
    )
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())
    assert all(module.training is training for module in model.modules())
    assert all(layer.track_running_stats for layer in layers(model).values())


def test_it_also_comes_back_when_the_model_fails() -> None:
    model = stack().train()
    with pytest.raises(UsageError, match="more than 1 value"):
        attribute(model, (torch.randn(1, 4),), layers(model))
    assert all(module.training for module in model.modules())
    assert all(layer.track_running_stats for layer in layers(model).values())


class Drawing(nn.Module):
    def __init__(self, draw: Any) -> None:
        super().__init__()
        self.bn, self.draw = nn.BatchNorm1d(4), draw

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(x) + self.draw()


@pytest.mark.parametrize(
    "draw", [lambda: 5 * torch.rand(4), random.random, np.random.rand], ids=["torch", "py", "np"]
)
def test_numbers_that_are_drawn_in_evaluation_are_the_same_each_time(draw: object) -> None:
    model = Drawing(draw)
    found = attribute(model, (2 + torch.randn(16, 4),), {"bn": model.bn})
    assert found.shares["bn"] == pytest.approx(1, abs=1e-6)


def test_a_model_that_answers_otherwise_each_time_is_not_attributed() -> None:
    calls = iter(range(100))
    model = Drawing(lambda: float(next(calls)))
    with pytest.raises(UsageError, match="other outputs each time"):
        attribute(model, (torch.randn(16, 4),), {"bn": model.bn})


def test_an_output_that_is_not_finite_is_not_attributed() -> None:
    model = stack()
    model[1].running_var.fill_(-3.0)
    with pytest.raises(UsageError, match="not finite"):
        attribute(model, (torch.randn(16, 4),), layers(model))


@pytest.mark.parametrize(
    "kind",
    [nn.BatchNorm1d, nn.SyncBatchNorm, batch_norm.BatchNorm1d],
    ids=["torch", "sync", "ours"],
)
def test_each_kind_of_batch_norm_is_switched(kind: Any) -> None:
    layer = kind(4)
    layer.running_var.fill_(9.0)
    before = copy.deepcopy(layer.state_dict())
    found = attribute(nn.Sequential(layer), (torch.randn(16, 4),), {"0": layer})
    assert found.shares["0"] == pytest.approx(1, abs=1e-6)
    assert found.change > 1
    assert all(torch.equal(before[name], value) for name, value in layer.state_dict().items())
