"""Sound models of many kinds, of which probes say nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, codes, probed

PROBES = (
    "batch-composition",
    "sequence-leaks",
    "evaluation-repeats",
    "mode-gap",
    "signal-profile",
    "half-precision",
    "affine-test",
    "reshaped-axes",
    "score-scale",
    "loss-terms",
)


class Block(nn.Module):
    """A residual block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in "12")
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in "12")

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norms[0](self.first(x)))
        return F.relu(x + self.norms[1](self.second(h)))


class ResNet(nn.Module):
    """Of two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.Sequential(*(Block(8) for _ in range(4)))
        self.head = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Transformer(nn.Module):
    """Predicts the next token; pre-norm."""

    def __init__(self, *, batch_first: bool = True, width: int = 32) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            width, 2, 2 * width, 0.1, "gelu", batch_first=batch_first, norm_first=True
        )
        self.axis = 1 if batch_first else 0
        self.embedding = nn.Embedding(30, width)
        self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(width, 30)

    def forward(self, tokens: Tensor) -> Tensor:
        steps = tokens.shape[self.axis]
        mask = torch.triu(torch.ones(steps, steps, dtype=torch.bool), 1)
        return self.head(self.layers(self.embedding(tokens), mask=mask))


class Recurrent(nn.Module):
    """Predicts the next token by an LSTM of two layers."""

    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 16)
        self.lstm = nn.LSTM(16, 32, 2, batch_first=batch_first, dropout=0.2)
        self.head = nn.Linear(32, 30)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.lstm(self.embedding(tokens))[0])


class VAE(nn.Module):
    """Draws in training only."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.mean, self.spread = nn.Linear(20, 64), nn.Linear(64, 8), nn.Linear(64, 8)
        self.decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 20))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = F.relu(self.encoder(x))
        mean, spread = self.mean(h), self.spread(h)
        noise = torch.randn_like(mean) if self.training else torch.zeros_like(mean)
        return self.decoder(mean + noise * (spread / 2).exp()), mean, spread


def evidence_bound(output: tuple[Tensor, Tensor, Tensor], x: Tensor) -> Tensor:
    made, mean, spread = output
    return F.mse_loss(made, x) - 0.05 * (1 + spread - mean**2 - spread.exp()).mean()


class Experts(nn.Module):
    """Two of four experts for each sample, so that the shapes inside depend on the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.gate, self.head = nn.Linear(20, 32), nn.Linear(32, 4), nn.Linear(32, 5)
        self.experts = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.first(x))
        weights, chosen = self.gate(h).softmax(-1).topk(2, -1)
        made = torch.zeros_like(h)
        for i, expert in enumerate(self.experts):
            here = (chosen == i).any(-1)
            weight = (weights * (chosen == i)).sum(-1)[here, None]
            made[here] += expert(h[here]) * weight
        return self.head(h + made)


class Contrastive(nn.Module):
    """Compares every sample with every other."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.text = nn.Linear(20, 16), nn.Linear(12, 16)

    def forward(self, image: Tensor, text: Tensor) -> Tensor:
        return 10 * F.normalize(self.image(image)) @ F.normalize(self.text(text)).T


class OfEdges(nn.Module):
    """Nodes of a graph whose edges are given."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(20, 16), nn.Linear(16, 3)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        h = F.relu(self.first(x))
        return self.second(h.index_add(0, edges[1], h[edges[0]]))


class LowRank(nn.Module):
    """A frozen layer with a low-rank addition that begins at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(20, 20).requires_grad_(False)
        self.down, self.up = nn.Linear(20, 2, bias=False), nn.Linear(2, 20, bias=False)
        self.head = nn.Linear(20, 5)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.base(x) + self.up(self.down(x))))


def of_tokens(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output.flatten(0, 1), target.flatten())


def features(samples: int = 32, width: int = 20) -> Tensor:
    return torch.randn(samples, width)


def labels(classes: int = 5, samples: int = 32) -> Tensor:
    return torch.randint(classes, (samples,))


def tokens(*, batch_first: bool) -> tuple[Tensor, Tensor]:
    text = torch.randint(30, (12, 21))
    pair = text[:, :-1], text[:, 1:]
    return pair if batch_first else (pair[0].T.contiguous(), pair[1].T)


Made = tuple[nn.Module, Any, Callable[..., Any]]
CROSS_ENTROPY = nn.CrossEntropyLoss()
HEALTHY: dict[str, Callable[[], Made]] = {
    "resnet": lambda: (ResNet(), (torch.randn(8, 3, 12, 12), labels(10, 8)), CROSS_ENTROPY),
    "transformer": lambda: (Transformer(), tokens(batch_first=True), of_tokens),
    "transformer (step, sample)": lambda: (
        *(Transformer(batch_first=False), tokens(batch_first=False), of_tokens),
    ),
    "lstm": lambda: (Recurrent(batch_first=True), tokens(batch_first=True), of_tokens),
    "lstm (step, sample)": lambda: (
        *(Recurrent(batch_first=False), tokens(batch_first=False), of_tokens),
    ),
    "vae": lambda: (VAE(), (x := features(), x), evidence_bound),
    "experts": lambda: (Experts(), (features(64), labels(5, 64)), CROSS_ENTROPY),
    "contrastive": lambda: (
        *(Contrastive(), (features(16), features(16, 12), torch.arange(16)), CROSS_ENTROPY),
    ),
    "graph": lambda: (
        *(OfEdges(), (features(), torch.randint(32, (2, 90)), labels(3)), CROSS_ENTROPY),
    ),
    "low rank": lambda: (LowRank(), (features(), labels()), CROSS_ENTROPY),
    "generator": lambda: (
        nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 20)),
        (features(), features()),
        nn.MSELoss(),
    ),
    "group norm": lambda: (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(),
                      nn.Linear(800, 5)),
        (torch.randn(8, 3, 12, 12), labels(5, 8)),
        CROSS_ENTROPY,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_found_in_a_sound_model(name: str):
    torch.manual_seed(0)
    model, batch, loss = HEALTHY[name]()
    run = probed(case_of(model, batch, loss), *PROBES)
    assert codes(run) == []
