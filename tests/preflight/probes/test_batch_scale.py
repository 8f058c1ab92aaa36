"""Sums and means over a batch, told by its halves."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from tests.preflight.cases import case_of, classifier, codes, labelled, probed, reason
from traindx.records import Site
from traindx.run import Run

X, Y = labelled()


def summed(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output, target, reduction="sum")


def contrasted(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output @ output.T, torch.arange(len(output)))


def run_of(loss: Any, kind: type[Optimizer], lr: float, model: nn.Module | None = None) -> Run:
    model = model or classifier()
    optimizer: Any = kind
    return probed(case_of(model, (X, Y), loss, optimizer(model.parameters(), lr=lr)), "batch-scale")


def test_a_sum_with_the_rate_of_a_mean_is_told():
    run = run_of(summed, torch.optim.SGD, 0.5)
    slope = run.at("probe.loss_slope", Site("net"))
    assert slope is not None
    assert slope.last == pytest.approx(1, abs=1e-3)
    assert codes(run) == ["L011"]


@pytest.mark.parametrize(
    ("loss", "kind", "lr"),
    [
        (F.cross_entropy, torch.optim.SGD, 0.5),
        (summed, torch.optim.SGD, 1e-4),
        (summed, torch.optim.Adam, 0.5),
    ],
)
def test_a_mean_a_small_rate_and_an_adaptive_step_are_not(
    loss: Any, kind: type[Optimizer], lr: float
):
    run = run_of(loss, kind, lr)
    assert (reason(run), codes(run)) == ("", [])


def test_the_first_step_is_that_of_the_optimizer():
    model = classifier()
    before = [param.detach().clone() for param in model.parameters()]
    run = run_of(summed, torch.optim.SGD, 0.01, model)
    told = run.at("probe.first_step", Site("net"))
    summed(model(X), Y).backward()
    torch.optim.SGD(model.parameters(), lr=0.01).step()
    after = [param.detach() for param in model.parameters()]
    pairs = list(zip(before, after, strict=True))
    moved = sum(float((new - old).square().sum()) for old, new in pairs) ** 0.5
    size = sum(float(old.square().sum()) for old, _ in pairs) ** 0.5
    assert told is not None
    assert told.last == pytest.approx(moved / size, rel=1e-4)


def test_a_loss_of_pairs_is_neither():
    run = run_of(contrasted, torch.optim.SGD, 0.5)
    assert reason(run) == "the loss is neither the mean nor the sum over its samples"
