"""Steps, signs, schedules and freezing on real training: faults, and near misses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical
from torch.optim.lr_scheduler import ReduceLROnPlateau

import traindx

CODES = {"O002", "O004", "O005", "O009", "O012", "O015", "S013"}
Train = Callable[[], None]
RULE = torch.randn(20, 5, generator=torch.Generator().manual_seed(3))


def batch(size: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(size, 20)
    return x, (x @ RULE).argmax(1)


def made() -> nn.Sequential:
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 5))


def fit(net: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 130) -> None:
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()


def clears_before_the_step() -> None:
    net = made()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(130):
        x, y = batch()
        F.cross_entropy(net(x), y).backward()
        optimizer.zero_grad()
        optimizer.step()


def steps_before_backward() -> None:
    net = made()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(130):
        x, y = batch()
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        optimizer.step()
        loss.backward()


def hardly_moves(lr: float) -> Train:
    def train() -> None:
        net = made()
        fit(net, torch.optim.SGD(net.parameters(), lr=lr))

    return train


def goes_on(*, restore: bool) -> Train:
    def train() -> None:
        net = made()
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
        fit(net, optimizer)
        second = made()
        second.load_state_dict(net.state_dict())
        other = torch.optim.Adam(second.parameters(), lr=1e-2)
        if restore:
            other.load_state_dict(optimizer.state_dict())
        fit(second, other, 40)

    return train


def freezes_a_new_head(*, first: bool) -> Train:
    def train() -> None:
        net = made()
        fit(net, torch.optim.Adam(net.parameters()), 60)
        if first:
            net[0].requires_grad_(False)
        net[2] = nn.Linear(32, 5)
        if not first:
            net[2].requires_grad_(False)
        fit(net, torch.optim.Adam([p for p in net.parameters() if p.requires_grad]), 40)

    return train


def plateau(mode: str) -> Train:
    def train() -> None:
        net = made()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        scheduler = ReduceLROnPlateau(optimizer, mode=mode, patience=2)  # pyright: ignore[reportArgumentType]
        x_test, y_test = batch(500)
        for _ in range(14):
            fit(net, optimizer, 10)
            with torch.no_grad():
                scheduler.step((net(x_test).argmax(1) == y_test).float().mean().item())

    return train


def bandit(sign: int) -> Train:
    def train() -> None:
        policy = nn.Linear(4, 3)
        optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
        for _ in range(40):
            seen = torch.randn(32, 4)
            distribution = Categorical(logits=policy(seen))
            action = distribution.sample()
            reward = (action == seen[:, :3].argmax(1)).float()
            optimizer.zero_grad()
            (sign * (reward - 0.3) * distribution.log_prob(action)).mean().backward()
            optimizer.step()

    return train


def divergence(sign: float) -> Train:
    def train() -> None:
        net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 10))
        optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
        for _ in range(150):
            x, _ = batch()
            loss = (net(x) - x[:, :10]).square().mean() + sign * net(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return train


@pytest.mark.slow
@pytest.mark.parametrize(
    ("train", "expected"),
    [
        (clears_before_the_step, {"O004": "Adam"}),
        (steps_before_backward, {"O004": "SGD"}),
        (hardly_moves(1e-7), {"O002": "SGD"}),
        (hardly_moves(0.05), {}),
        (goes_on(restore=False), {"O009": "Adam#2"}),
        (goes_on(restore=True), {}),
        (freezes_a_new_head(first=False), {"S013": "2"}),
        (freezes_a_new_head(first=True), {}),
        (plateau("min"), {"O005": "SGD"}),
        (plateau("max"), {}),
        (bandit(1), {"O012": "policy"}),
        (bandit(-1), {}),
        (divergence(-2.0), {"O012": "net"}),
        (divergence(0.1), {}),
    ],
)
def test_what_is_wrong_is_found_where_it_is(train: Train, expected: dict[str, str], tmp_path: Path):
    torch.manual_seed(0)
    with traindx.watch(name="training", folder=tmp_path, every=4) as session:
        train()
    verdict = session.run.verdict
    assert verdict is not None
    found = {it.code: str(it.evidence.site) for it in verdict.findings if it.code in CODES}
    assert found == expected
