"""Parameters, memory and time of a pass."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.preflight.cases import case_of, classifier, labelled, probed, reason
from traindx.records import Site
from traindx.run import Run

NAME = "cost"


def number(run: Run, name: str) -> float:
    series = run.at(f"probe.{name}", Site("net"))
    assert series is not None
    return series.last


def test_parameters_and_their_memory_are_counted() -> None:
    model = classifier()
    model[0].requires_grad_(False)
    run = probed(case_of(model, labelled(), F.cross_entropy), NAME)
    whole, head = 20 * 32 + 32 + 32 * 10 + 10, 32 * 10 + 10
    assert number(run, "parameters") == whole
    assert number(run, "trainable_parameters") == head
    assert number(run, "parameter_bytes") == 4 * whole


def test_what_autograd_keeps_is_counted_once_and_without_weights() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    x = torch.randn(1000, 64)
    run = probed(case_of(model, (x,), lambda output: output.sum()), NAME)
    kept = (
        3 * x.numel() * 4
    )  # the batch, and what each ReLU returns, which the next layer keeps too
    assert number(run, "activation_bytes") == kept


def test_a_larger_batch_keeps_more_and_takes_time() -> None:
    runs = [probed(case_of(classifier(), labelled(n), F.cross_entropy), NAME) for n in (32, 320)]
    small, large = (number(run, "activation_bytes") for run in runs)
    assert large == pytest.approx(10 * small, rel=0.01)
    assert all(number(run, "forward_seconds") > 0 for run in runs)
    assert all(number(run, "backward_seconds") > 0 for run in runs)


def test_without_a_loss_there_is_no_backward_pass() -> None:
    assert reason(probed(case_of(classifier(), labelled()[0]), NAME)).startswith("no loss")
