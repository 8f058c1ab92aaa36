"""The trainings whose cost is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """A residual block with BatchNorm."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.skip = nn.Conv2d(inside, outside, 1, stride) if inside != outside else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(hidden)) + self.skip(x))


class Attention(nn.Module):
    """Causal self-attention of four heads."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    """A transformer layer that normalizes first."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attention = Attention(width)
        self.ln2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU()
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.ln1(x))
        return x + self.down(self.gelu(self.up(self.ln2(x))))


class Transformer(nn.Module):
    """A small language model."""

    def __init__(self, layers: int = 6, width: int = 256, words: int = 256) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.places = nn.Parameter(0.02 * torch.randn(64, width))
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)).flatten(0, 1)


class Recurrent(nn.Module):
    """An LSTM language model."""

    def __init__(self, layers: int = 2, width: int = 256, words: int = 256) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.lstm(self.embedding(tokens))[0]).flatten(0, 1)


def mlp() -> nn.Module:
    """784-512-512-10 with BatchNorm."""
    return nn.Sequential(
        nn.Linear(784, 512), nn.BatchNorm1d(512), nn.ReLU(),
        nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 10),
    )  # fmt: skip


def resnet() -> nn.Module:
    """Three stages of 16, 32 and 64 channels, two blocks each."""
    stages = [(16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        *(Block(*stage) for stage in stages),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def chain(layers: int, width: int = 64) -> nn.Module:
    """So many Linear layers with a ReLU behind each, and one more to ten classes."""
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(width, 10))


class Training:
    """One model, its optimizer, and a batch that it learns again and again."""

    def __init__(self, model: nn.Module, inputs: Tensor, labels: Tensor) -> None:
        self.model, self.inputs, self.labels = model, inputs, labels
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


@dataclass(frozen=True)
class Program:
    """A training by name.

    Attributes:
        title: For people.
        make: Builds it, from a seed of its own.
        every_step: The largest ratio aimed at when all steps are measured.
    """

    title: str
    make: Callable[[], Training]
    every_step: float | None = None


def _images(make: Callable[[], nn.Module], *shape: int) -> Callable[[], Training]:
    def training() -> Training:
        torch.manual_seed(0)
        return Training(make(), torch.randn(shape), torch.randint(0, 10, shape[:1]))

    return training


def _text(make: Callable[[], nn.Module], batch: int, length: int) -> Callable[[], Training]:
    def training() -> Training:
        torch.manual_seed(0)
        tokens = torch.randint(0, 256, (batch, length))
        return Training(make(), tokens, tokens.roll(-1, 1).flatten())

    return training


PROGRAMS: dict[str, Program] = {
    "mlp": Program("MLP 784-512-512-10 BN, batch 128", _images(mlp, 128, 784), 1.30),
    "resnet": Program("ResNet 16-32-64, 32x3x32x32", _images(resnet, 32, 3, 32, 32), 1.20),
    "transformer": Program("transformer, 6 layers of 256, 8x64", _text(Transformer, 8, 64), 1.15),
    "lstm": Program("LSTM, 2 layers of 256, 32x32", _text(Recurrent, 32, 32), 1.15),
}


def find(key: str) -> Program:
    """The program of that name; `chain-100` is a chain of 100 layers, `tiny` the least training."""
    if key == "tiny":
        return Program("one Linear layer 8-10, batch 4", _images(lambda: nn.Linear(8, 10), 4, 8))
    if key.startswith("chain-"):
        layers = int(key.removeprefix("chain-"))
        return Program(f"chain of {layers} layers", _images(lambda: chain(layers), 64, 64))
    return PROGRAMS[key]
