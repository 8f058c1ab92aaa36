"""Healthy models, new and trained, on batches of any size: no error and no warning."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import spectral_norm

from traindx.datasets import fashion_mnist
from traindx.findings import Severity
from traindx.norm.audit.check import audit
from traindx.norm.modules.audited import of_model

_STEPS = 60


@cache
def data() -> tuple[Tensor, Tensor]:
    found = fashion_mnist.load_subset()
    images = torch.tensor(found.train_images[:2000, None] / 255).float()
    return images, torch.tensor(found.train_labels[:2000]).long()


def cnn(norm: Callable[[int], nn.Module]) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1), norm(8), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1, bias=False),
        norm(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 49, 10),
    )  # fmt: skip


def mlp() -> nn.Module:
    """Raw pixels are normalized, many of which never vary."""
    return nn.Sequential(
        nn.Flatten(), nn.BatchNorm1d(784), nn.Linear(784, 64), nn.BatchNorm1d(64), nn.ReLU(),
        nn.Dropout(0.2), nn.Linear(64, 10),
    )  # fmt: skip


def spectral() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), spectral_norm(nn.Linear(784, 256)), nn.ReLU(),
        spectral_norm(nn.Linear(256, 256)), nn.ReLU(), nn.Linear(256, 10),
    )  # fmt: skip


class Transformer(nn.Module):
    """Rows of an image as tokens."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, 0.1, batch_first=True)
        self.first = nn.Linear(28, 16)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.last = nn.RMSNorm(16), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.encoder(self.first(x[:, 0]))).mean(1))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "batch": lambda: cnn(nn.BatchNorm2d),
    "group": lambda: cnn(lambda n: nn.GroupNorm(4, n)),
    "instance": lambda: cnn(lambda n: nn.InstanceNorm2d(n, affine=True, track_running_stats=True)),
    "mlp": mlp,
    "spectral": spectral,
    "transformer": Transformer,
}


def trained(model: nn.Module) -> nn.Module:
    images, labels = data()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model.train()
    for _ in range(_STEPS):
        drawn = torch.randint(0, len(images), (64,))
        optimizer.zero_grad()
        F.cross_entropy(model(images[drawn]), labels[drawn]).backward()
        optimizer.step()
    return model


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("new", [True, False], ids=["new", "trained"])
def test_a_healthy_model_has_no_error_and_no_warning(name: str, new: bool) -> None:
    torch.manual_seed(0)
    model = MODELS[name]() if new else trained(MODELS[name]())
    steps = None if new else _STEPS
    for size in (256, 64, 32, 16, 8):
        batch = data()[0][-size:]
        for inputs, random in (((batch,), False), ((torch.randn_like(batch),), True), ((), False)):
            found = audit(of_model(model, inputs, random=random, steps=steps)).found
            assert [one for one in found if one.severity is not Severity.INFO] == []
