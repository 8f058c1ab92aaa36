"""Whether networks are affine in their input."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.preflight.cases import case_of, classifier, codes, labelled, probed, reason

NAME = "affine-test"
X, Y = labelled()


def run_of(model: nn.Module, x: torch.Tensor = X):
    return probed(case_of(model, (x, Y[: len(x)]), F.cross_entropy), NAME)


@pytest.mark.parametrize(
    "between",
    [
        (nn.Linear(32, 32),),
        (nn.Dropout(0.5), nn.Linear(32, 32), nn.BatchNorm1d(32)),
        (nn.Identity(),),
    ],
)
def test_layers_without_a_nonlinearity_are_told(between: tuple[nn.Module, ...]) -> None:
    assert codes(run_of(classifier(*between))) == ["S001"]


def test_a_softmax_at_the_end_hides_nothing() -> None:
    model = nn.Sequential(classifier(nn.Linear(32, 32)), nn.LogSoftmax(1))
    assert codes(run_of(model)) == ["S001"]


def test_convolutions_and_average_pooling_alone_are_affine() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(3, 8, 3), nn.AvgPool2d(2), nn.Conv2d(8, 8, 3)),
        *(nn.Flatten(), nn.Linear(8 * 25, 10)),
    )
    assert codes(run_of(model, torch.randn(8, 3, 16, 16))) == ["S001"]


@pytest.mark.parametrize(
    "between",
    [
        (nn.ReLU(),),
        (nn.Tanh(), nn.Linear(32, 32)),
        (nn.LayerNorm(32),),
        (nn.Softplus(beta=0.1, threshold=1000.0),),
        (nn.Linear(32, 4), nn.Linear(4, 32)),
    ],
)
def test_a_bend_and_a_narrow_layer_are_not_told(between: tuple[nn.Module, ...]) -> None:
    assert not codes(run_of(classifier(*between)))


def test_one_layer_is_meant_to_be_linear() -> None:
    assert not codes(run_of(nn.Linear(20, 10)))


def test_two_heads_side_by_side_are_no_stack() -> None:
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(20, 5), nn.Linear(20, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([self.a(x), self.b(x)], 1)

    assert not codes(run_of(Heads()))


def test_tokens_are_no_real_numbers() -> None:
    model = nn.Sequential(nn.Embedding(50, 8), nn.Flatten(), nn.Linear(32, 10))
    run = run_of(model, torch.randint(0, 50, (16, 4)))
    assert reason(run) == "the input is not made of real numbers"


class Gated(nn.Module):
    """A branch that begins times zero."""

    def __init__(self, bend: bool, trained: bool = True) -> None:
        super().__init__()
        self.layer, self.bend = nn.Linear(32, 32), bend
        self.gate = nn.Parameter(torch.zeros(()), requires_grad=trained)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.layer(x)
        return x + self.gate * (h.relu() if self.bend else h)


def test_a_branch_that_begins_times_zero_bends_once_it_is_trained() -> None:
    assert not codes(run_of(classifier(Gated(bend=True))))
    assert codes(run_of(classifier(Gated(bend=False)))) == ["S001"]
    assert codes(run_of(classifier(Gated(bend=True, trained=False)))) == ["S001"]
