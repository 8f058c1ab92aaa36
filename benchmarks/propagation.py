"""How far theory is from measurement on wide networks: python benchmarks/propagation.py.

For each kind of network the greatest relative error of an output's RMS and of a gradient's RMS, and
the greatest difference of a share, over all layers, chained from the network's input and end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from traindx.preflight.propagation import passages
from traindx.signal.activations import names
from traindx.signal.profile import expected

WIDTH = 1024
SPREADING = {"Hardshrink", "Softshrink", "Tanhshrink"}
"""Activations that let nothing through unless the weights are wide: these get the gain 2."""


def errors(model: nn.Module, x: Tensor) -> tuple[float, float, float]:
    """Greatest error of RMS, share and gradient over all layers."""
    rms, share, gradient = [0.0], [0.0], [0.0]
    measured = passages(model, [x])
    for passage, theory in zip(measured, expected(measured), strict=True):
        made, chained = passage.made, theory.chained
        if made is not None and chained is not None:
            rms.append(abs(chained.rms / made.rms - 1))
            share.append(abs(chained.share - made.share))
        if passage.gradient and theory.gradient:
            gradient.append(abs(math.sqrt(theory.gradient / passage.gradient) - 1))
    return max(rms), max(share), max(gradient)


def stack(*makers: Callable[[], nn.Module], depth: int = 6) -> nn.Sequential:
    """Linear layers, each followed by these."""
    layers = ((nn.Linear(WIDTH, WIDTH), *(make() for make in makers)) for _ in range(depth))
    return nn.Sequential(*(layer for several in layers for layer in several))


def activated(name: str) -> nn.Sequential:
    """Linear layers with this activation."""
    if name == "Threshold":
        return stack(lambda: nn.Threshold(0.1, 0.2))
    model = stack(getattr(nn, name))
    if name in SPREADING:
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, 0.0, 2 / math.sqrt(WIDTH))
    return model


def convolved(*between: Callable[[], nn.Module], **options: Any) -> nn.Sequential:
    """Two padded convolutions, each followed by these."""
    convs = (nn.Conv2d(wide, 128, 3, padding=1, **options) for wide in (64, 128))
    return nn.Sequential(*(m for conv in convs for m in (conv, *(make() for make in between))))


class Block(nn.Module):
    """A residual block, normalized first."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
        self.down = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """The signal, and what the block makes of it."""
        return x + self.down(F.gelu(self.up(self.norm(x))))


def residual() -> nn.Sequential:
    """Eight blocks behind a linear layer."""
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), *(Block() for _ in range(8)))


def networks() -> Iterator[tuple[str, Callable[[], nn.Module], tuple[int, ...]]]:
    """Name, maker and the shape of the batch of each kind."""
    flat, image = (256, WIDTH), (32, 64, 16, 16)
    for name in names():
        yield name, lambda name=name: activated(name), flat
    yield "LayerNorm", lambda: stack(lambda: nn.LayerNorm(WIDTH), nn.GELU), flat
    yield "RMSNorm", lambda: stack(lambda: nn.RMSNorm(WIDTH), nn.GELU), flat
    yield "BatchNorm1d", lambda: stack(lambda: nn.BatchNorm1d(WIDTH), nn.GELU), flat
    yield "Dropout", lambda: stack(nn.ReLU, lambda: nn.Dropout(0.3)), flat
    yield "residual", residual, flat
    yield "Conv2d", lambda: convolved(nn.ReLU), image
    yield "Conv2d, groups", lambda: convolved(nn.ReLU, groups=8), image
    yield "Conv2d, stride", lambda: convolved(nn.ReLU, stride=2), image
    yield (
        "ConvTranspose2d",
        lambda: nn.Sequential(
            *(nn.ConvTranspose2d(64, 128, 4, 2, 1), nn.ReLU()),
            *(nn.ConvTranspose2d(128, 64, 3, 2), nn.Tanh()),
        ),
        image,
    )
    yield "BatchNorm2d", lambda: convolved(lambda: nn.BatchNorm2d(128), nn.ReLU), image
    yield "GroupNorm", lambda: convolved(lambda: nn.GroupNorm(8, 128), nn.ReLU), image
    yield "MaxPool2d", lambda: convolved(nn.ReLU, lambda: nn.MaxPool2d(2)), image


def main() -> None:
    """Print a line for each kind of network."""
    print(f"{'network':<16}{'RMS':>8}{'share':>8}{'gradient':>10}")
    for name, make, shape in networks():
        torch.manual_seed(0)
        x = torch.randn(*shape, generator=torch.Generator().manual_seed(1))
        rms, share, gradient = errors(make(), x)
        print(f"{name:<16}{rms:>8.1%}{share:>8.3f}{gradient:>10.1%}", flush=True)


if __name__ == "__main__":
    main()
