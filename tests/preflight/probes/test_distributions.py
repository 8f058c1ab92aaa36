"""Probe: histograms and quantiles are those of every layer's values, and few."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, labelled, probed, reason
from traindx.pictured import BINS, PROBABILITIES
from traindx.records import EventKind
from traindx.run import Run

PASSES = "distributions"


def numbers(run: Run, quantity: str, fqn: str) -> tuple[float, ...]:
    (found,) = (v[0] for site, v in run.vectors(f"probe.{quantity}").items() if site.fqn == fqn)
    return tuple(found.values)


def test_they_are_those_of_outputs_gradients_and_weights() -> None:
    net, (x, y) = classifier(), labelled()
    run = probed(case_of(net, (x, y), nn.CrossEntropyLoss()), PASSES)
    first, act, last = net
    assert isinstance(first, nn.Linear)
    hidden = first(x)
    hidden.retain_grad()
    F.cross_entropy(last(act(hidden)), y).backward()
    assert hidden.grad is not None
    expected = {"output": hidden, "gradient": hidden.grad, "weight": first.weight}
    for kind, tensor in expected.items():
        values = tensor.detach().numpy().ravel()
        quantiles = numbers(run, f"{kind}_quantiles", "0")
        assert quantiles == pytest.approx(np.quantile(values, PROBABILITIES), rel=1e-4, abs=1e-9)
        low, high, zeros, broken, *bins = numbers(run, f"{kind}_histogram", "0")
        inside = values[(values >= low) & (values <= high) & (values != 0)]
        assert sum(bins) == len(inside)
        assert zeros == pytest.approx(np.mean(values == 0), abs=1e-6)
        assert (broken, len(bins)) == (0, BINS)
        expected_bins = np.histogram(inside, BINS, (low, high))[0]
        assert np.abs(expected_bins - bins).sum() <= 4  # at the edges of bins, by rounding


def test_zeros_and_what_is_not_finite_are_told_apart() -> None:
    first = nn.Linear(4, 4, bias=False)
    with torch.no_grad():
        first.weight.copy_(torch.diag(torch.tensor([1.0, -1.0, 0.0, 1.0])))
        first.weight[2, 2] = math.inf
    x = torch.ones(8, 4)
    x[:, 2] = 0  # 0 times infinity is NaN
    run = probed(case_of(nn.Sequential(first, nn.ReLU()), x), PASSES)
    low, high, zeros, broken, *bins = numbers(run, "output_histogram", "1")
    assert (low, high, zeros, broken) == (1, 1, 0.25, 0.25)
    assert sum(bins) == 16
    assert numbers(run, "output_quantiles", "1")[-1] == 1


def test_without_a_loss_there_are_no_gradients() -> None:
    run = probed(case_of(classifier(), labelled()[0]), PASSES)
    assert run.vectors("probe.output_histogram")
    assert not run.vectors("probe.gradient_histogram")


def test_of_very_many_layers_some_are_looked_at() -> None:
    net = nn.Sequential(*(nn.Tanh() for _ in range(1000)), nn.Flatten(), nn.Linear(4, 2))
    run = probed(case_of(net, torch.randn(4, 4)), PASSES)
    fqns = [site.fqn for site in run.vectors("probe.output_histogram")]
    assert (len(fqns), fqns[0], fqns[-1]) == (128, "0", "1001")
    (seen,) = run.events(EventKind.OBSERVED)
    assert (seen.detail["layers"], seen.detail["shown"]) == (1001, 128)


class Twice(nn.Module):
    """Works in place on what a layer has made, and calls that layer again."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.act = nn.Linear(4, 4), nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.act(self.layer(x)))


def test_what_is_overwritten_later_is_told_as_it_was_made() -> None:
    net, x = Twice(), torch.randn(8, 4)
    run = probed(case_of(net, (x, torch.zeros(8, 4)), nn.MSELoss()), PASSES)
    made = net.layer(x).detach().numpy()
    assert numbers(run, "output_quantiles", "layer")[0] == pytest.approx(made.min(), rel=1e-5)
    assert made.min() < 0


class Silent(nn.Module):
    """Makes no real numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return x.argmax(1)


def test_a_model_of_no_real_numbers_says_so() -> None:
    run = probed(case_of(Silent(), torch.randn(4, 4)), PASSES)
    assert "no layer makes real numbers" in reason(run)
