"""Probe: the first layer in the order of calls, and its input, are found."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tests.preflight.cases import case_of, probed, reason
from traindx.records import EventKind


class Backwards(nn.Module):
    """Calls its layers in another order than it names them."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.first = nn.Linear(4, 2), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x.flatten(1)))


def test_the_first_layer_is_the_one_that_is_called_first() -> None:
    run = probed(case_of(Backwards(), torch.randn(8, 1, 3, 4)), "first-weights")
    assert [site.fqn for site in run.vectors("first_layer.weights")] == ["first"]
    (seen,) = run.events(EventKind.OBSERVED)
    assert (seen.detail["kind"], seen.detail["shape"]) == ("rows", [4, 1, 3, 4])


def test_a_model_without_such_a_layer_says_so() -> None:
    run = probed(case_of(nn.LSTM(3, 4), torch.randn(5, 2, 3)), "first-weights")
    assert "no weight of its own" in reason(run)
