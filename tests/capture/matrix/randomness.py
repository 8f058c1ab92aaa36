"""Trainings that draw random numbers of every kind, and meet what is not finite."""

from __future__ import annotations

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.matrix.training import Cases, Training, batch, sgd

CASES = Cases()


class Noisy(nn.Module):
    """Draws from every kind of generator, keeps count, and breaks in one training call."""

    def __init__(self, breaks: str = "", at: int = 2) -> None:
        super().__init__()
        self.at = at
        self.first, self.norm, self.last = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
        self.of_torch = torch.Generator().manual_seed(5)
        self.of_numpy, self.of_python = np.random.default_rng(0), random.Random(3)
        self.seen: list[float] = []
        self.by_call: dict[int, int] = {}
        self.breaks, self.trained = breaks, 0

    def forward(self, x: Tensor) -> Tensor:
        broken = self.breaks if self.training and self.trained == self.at else ""
        self.trained += self.training
        self.seen.append(float(x.sum()))
        self.by_call[len(self.by_call)] = self.trained
        noise = self.of_numpy.normal() + self.of_python.random() + random.random()
        x = x + torch.randn(x.shape, generator=self.of_torch) + noise + np.random.rand()
        hidden = F.dropout(self.norm(self.first(x)), 0.2, self.training)
        if broken == "forward" or (self.breaks == "evaluation" and not self.training):
            hidden = hidden * torch.zeros(()).log()
        if broken == "backward":
            hidden = hidden + (hidden.square() * 0).sqrt()
        return self.last(hidden)

    @property
    def drawn(self) -> tuple[object, ...]:
        return self.of_torch, self.of_numpy, self.of_python, self.seen, self.by_call


def noisy(breaks: str = "", *, at: int = 2, skips: bool = False) -> Training:
    """With `skips`, steps whose loss or gradients are not finite are left out."""
    net = Noisy(breaks, at)
    optimizer = sgd(net)
    x, y = batch()

    def step(i: int) -> object:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y) * (float("nan") if breaks == "loss" and i == at else 1.0)
        if skips and not loss.isfinite():
            return "left out"
        loss.backward()
        gradients = [param.grad for param in net.parameters()]
        if not skips or all(bool(held.isfinite().all()) for held in gradients):  # pyright: ignore
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(x)
        net.train()
        return loss.detach(), out

    return Training(step, (net, optimizer, *net.drawn))


@CASES()
def random_numbers_of_every_kind() -> Training:
    return noisy()


@CASES(slow=True)
def nan_in_forward() -> Training:
    return noisy("forward")


@CASES(awaited=True)
def nan_in_forward_left_out() -> Training:
    return noisy("forward", skips=True)


@CASES(slow=True)
def nan_in_backward() -> Training:
    return noisy("backward")


@CASES()
def nan_in_backward_left_out() -> Training:
    return noisy("backward", skips=True)


@CASES(slow=True)
def nan_in_the_loss() -> Training:
    return noisy("loss")


@CASES(awaited=True)
def nan_in_the_loss_left_out() -> Training:
    return noisy("loss", skips=True)


@CASES()
def nan_in_evaluation_alone() -> Training:
    return noisy("evaluation")


@CASES()
def nan_in_forward_of_the_first_step() -> Training:
    return noisy("forward", at=0)


@CASES(slow=True)
def nan_in_backward_of_the_first_step() -> Training:
    return noisy("backward", at=0)


@CASES(awaited=True)
def nan_in_the_loss_of_the_first_step_left_out() -> Training:
    return noisy("loss", at=0, skips=True)
