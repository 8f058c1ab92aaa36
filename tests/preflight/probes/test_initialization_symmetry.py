"""Units that begin alike, and whether they stay so."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason

NAME = "initialization-symmetry"
BATCH = labelled()


def run_of(model: nn.Module):
    return probed(case_of(model, BATCH, F.cross_entropy), NAME)


@pytest.mark.parametrize("value", [0.0, 0.1])
@pytest.mark.parametrize("activation", [nn.ReLU(), nn.Tanh()])
def test_constant_layers_are_told(value: float, activation: nn.Module) -> None:
    model = classifier(activation)
    for param in model.parameters():
        nn.init.constant_(param, value)
    found = finding(run_of(model), "S002")
    assert found.evidence.site.fqn == "0"
    assert found.evidence.numbers["units"] == 32


def test_random_layers_and_zero_biases_are_not() -> None:
    model = classifier(nn.ReLU())
    nn.init.zeros_(cast(Any, model[0].bias))
    assert not codes(run_of(model))


def test_a_zero_at_the_end_becomes_different_by_training() -> None:
    model = classifier(nn.ReLU())
    nn.init.zeros_(cast(Any, model[2].weight))
    nn.init.zeros_(cast(Any, model[2].bias))
    assert not codes(run_of(model))


class Adapted(nn.Module):
    """A low-rank adapter beside a frozen layer, and a residual branch that ends in zero."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.base = nn.Linear(20, 32).requires_grad_(False)
        self.down, self.up = nn.Linear(20, 4, bias=False), nn.Linear(4, 32, bias=False)
        nn.init.zeros_(self.up.weight)
        self.branch = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
        nn.init.zeros_(cast(Any, self.branch[2].weight))
        nn.init.zeros_(cast(Any, self.branch[2].bias))
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.base(x) + self.up(self.down(x)))
        return self.head(h + self.branch(h))


def test_an_adapter_and_a_residual_branch_of_zeros_are_no_fault() -> None:
    assert not codes(run_of(Adapted()))


class Gated(nn.Module):
    """Blocks whose shift, scale and gate begin at zero, and a head of zeros."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.condition = nn.Linear(20, 96)
        self.block = nn.Linear(32, 32)
        self.stem, self.head = nn.Linear(20, 32), nn.Linear(32, 10)
        for layer in (self.condition, self.head):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        shift, scale, gate = self.condition(x).chunk(3, 1)
        h = self.stem(x)
        h = h + gate * torch.relu(self.block(h * (1 + scale) + shift))
        return self.head(h)


def test_gates_of_zeros_before_a_head_of_zeros_are_no_fault() -> None:
    assert not codes(run_of(Gated()))


def test_a_constant_layer_that_no_gradient_reaches_is_another_fault() -> None:
    model = classifier(nn.ReLU())
    model.unused = nn.Linear(20, 32)
    nn.init.zeros_(model.unused.weight)
    nn.init.zeros_(model.unused.bias)

    def first(x: Tensor) -> Tensor:
        return model[2](model[1](model[0](x)))

    cast(Any, model).forward = first
    assert not codes(run_of(model))


def test_without_a_loss_there_is_nothing_to_train_by() -> None:
    run = probed(case_of(classifier(), BATCH[0]), NAME)
    assert reason(run) == "no loss was given, and the model returns none"
