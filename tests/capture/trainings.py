"""Trainings of every kind, on whatever device: what is recorded must not depend on where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from benchmarks.costs.programs import Block, Recurrent, Transformer

Training = Callable[[str], list[Tensor]]
"""Trains on the device of that name; the losses, not yet read."""

STEPS = 6


def _images(device: str, *shape: int, classes: int = 3) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    x, y = torch.randn(shape), torch.randint(0, classes, shape[:1])
    return x.to(device), y.to(device)


def _tokens(device: str) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    tokens = torch.randint(0, 16, (2, 64))
    return tokens.to(device), tokens.roll(-1, 1).flatten().to(device)


def _mlp(device: str) -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)
    return nn.Sequential(*layers).to(device)


def _loop(
    net: nn.Module, data: tuple[Tensor, Tensor], optimizer: Any = None, steps: int = STEPS
) -> list[Tensor]:
    optimizer = optimizer or torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    losses: list[Tensor] = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(data[0]), data[1])
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def mlp(device: str) -> list[Tensor]:
    return _loop(_mlp(device), _images(device, 16, 6))


def resnet(device: str) -> list[Tensor]:
    torch.manual_seed(0)
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3)
    net = nn.Sequential(Block(3, 4, 1), Block(4, 8, 2), *head).to(device)
    return _loop(net, _images(device, 4, 3, 8, 8))


def transformer(device: str) -> list[Tensor]:
    torch.manual_seed(0)
    return _loop(Transformer(2, 16, 16).to(device), _tokens(device))


def lstm(device: str) -> list[Tensor]:
    torch.manual_seed(0)
    return _loop(Recurrent(1, 16, 16).to(device), _tokens(device))


def sigmoids(device: str) -> list[Tensor]:
    torch.manual_seed(0)
    parts = [part for _ in range(5) for part in (nn.Linear(6, 6), nn.Sigmoid())]
    return _loop(nn.Sequential(*parts, nn.Linear(6, 3)).to(device), _images(device, 8, 6))


def scaled(device: str, *, fused: bool = False) -> list[Tensor]:
    """With a GradScaler, an overflow in one step, and clipping."""
    net, (x, y) = _mlp(device), _images(device, 16, 6)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=fused)
    scaler = torch.amp.GradScaler(device, init_scale=4096.0)
    losses: list[Tensor] = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        scaler.scale(loss * float("inf") if step == 2 else loss).backward()
        if not fused:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    return losses


def fused(device: str) -> list[Tensor]:
    return scaled(device, fused=True)


def clipped(device: str) -> list[Tensor]:
    """With two micro-batches a step, clipped by value."""
    net, (x, y) = _mlp(device), _images(device, 16, 6)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses: list[Tensor] = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        for part in (slice(0, 8), slice(8, 16)):
            loss = F.cross_entropy(net(x[part]), y[part]) / 2
            loss.backward()
            losses.append(loss.detach())
        nn.utils.clip_grad_value_(net.parameters(), 0.01)
        optimizer.step()
    return losses


def lbfgs(device: str) -> list[Tensor]:
    """With a closure."""
    net, (x, y) = _mlp(device), _images(device, 16, 6)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)
    losses: list[Tensor] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        losses.append(loss.detach())
        return loss

    for _ in range(3):
        optimizer.step(closure)  # pyright: ignore[reportArgumentType]
    return losses


def sparse(device: str) -> list[Tensor]:
    """With sparse gradients of an embedding."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Embedding(16, 4, sparse=True), nn.Flatten(), nn.Linear(16, 3))
    data = torch.arange(32).remainder(16).reshape(8, 4).to(device), torch.arange(8).remainder(3)
    net.to(device)
    return _loop(net, (data[0], data[1].to(device)), torch.optim.SGD(net.parameters(), lr=0.1))


def half(device: str) -> list[Tensor]:
    """In bfloat16 throughout, with a learning rate that is a tensor."""
    net, (x, y) = _mlp(device).bfloat16(), _images(device, 16, 6)
    rate = torch.tensor(0.01, device=device)
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, foreach=False)
    return _loop(net, (x.bfloat16(), y), optimizer)


def checkpointed(device: str) -> list[Tensor]:
    """A part computed again in backward, and passes that train nothing between the steps."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part, self.head = nn.Sequential(nn.Linear(6, 8), nn.ReLU()), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(checkpoint(self.part, x, use_reentrant=False))

    torch.manual_seed(0)
    net, data, losses = Net().to(device), _images(device, 8, 6), list[Tensor]()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(STEPS):
        losses += _loop(net, data, optimizer, steps=1)
        with torch.no_grad():
            net(data[0])
    return losses


def by_hand(device: str) -> list[Tensor]:
    """Without any optimizer."""
    net, (x, y), losses = _mlp(device), _images(device, 16, 6), list[Tensor]()
    for _ in range(STEPS):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        losses.append(loss.detach())
        with torch.no_grad():
            for param in net.parameters():
                gradient, param.grad = param.grad, None
                assert gradient is not None
                param -= 0.1 * gradient
    return losses


TRAININGS: dict[str, Training] = {
    training.__name__: training
    for training in (
        mlp, resnet, transformer, lstm, sigmoids, scaled, fused, clipped, lbfgs, sparse, half,
        checkpointed, by_hand,
    )
}  # fmt: skip
