"""A loss, or a model, that differentiates what was made: a slope that is learned, as in physics."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.preflight.cases import probed
from tests.preflight.test_finding import found
from traindx.preflight.case import Case
from traindx.preflight.catalog import catalog
from traindx.rules.probed import looked

SAMPLES = 32


def physics() -> Case:
    """Learns a function whose slope is the cosine."""

    def train() -> None:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        x = torch.rand(SAMPLES, 1, requires_grad=True)
        slope = torch.autograd.grad(model(x).sum(), x, create_graph=True)[0]
        F.mse_loss(slope, torch.cos(x.detach())).backward()
        optimizer.step()

    return found(train)


def penalized() -> Case:
    """A critic whose slope is held at 1 between real and made samples (WGAN-GP)."""

    def train() -> None:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        real, fake = torch.randn(SAMPLES, 3) + 1, torch.randn(SAMPLES, 3)
        between = real + (fake - real) * torch.rand(SAMPLES, 1)
        between.requires_grad_()
        slope = torch.autograd.grad(model(between).sum(), between, create_graph=True)[0]
        loss = model(fake).mean() - model(real).mean() + (slope.norm(dim=1) - 1).square().mean()
        loss.backward()
        optimizer.step()

    return found(train)


class Slope(nn.Module):
    """The slope of a learned function, which its forward pass takes itself."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1, bias=False)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(self.net(x).sum(), x, create_graph=True)[0]


def within() -> Case:
    """The same, within the model."""

    def train() -> None:
        torch.manual_seed(0)
        model = Slope()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        x = torch.rand(SAMPLES, 1)
        F.mse_loss(model(x), torch.cos(x)).backward()
        optimizer.step()

    return found(train)


@pytest.mark.parametrize("make", [physics, penalized, within])
def test_no_probe_fails_where_the_loss_differentiates(make: Callable[[], Case]) -> None:
    looks = looked(probed(make(), *catalog(), quick=True))
    assert [look.name for look in looks if look.failed] == []


def test_the_gradient_of_a_slope_is_checked_and_some_samples_are_learned() -> None:
    looks = looked(probed(physics(), "batch-scale", "gradient-check", "overfit-tiny-subset"))
    assert {look.name: look.reason for look in looks} == dict.fromkeys(
        ("batch-scale", "gradient-check", "overfit-tiny-subset"), ""
    )


@pytest.mark.parametrize("make", [physics, penalized])
def test_the_slope_of_some_samples_is_theirs(make: Callable[[], Case]) -> None:
    case = make()
    halves = [case.take(torch.arange(SAMPLES)[i : i + 16]).loss().item() for i in (0, 16)]
    assert abs(sum(halves) / 2 - case.loss().item()) < 1e-6


@pytest.mark.parametrize("make", [physics, penalized])
def test_the_loss_in_float64_is_the_loss(make: Callable[[], Case]) -> None:
    case = make()
    assert abs(case.double().loss().item() - case.loss().item()) < 1e-6
