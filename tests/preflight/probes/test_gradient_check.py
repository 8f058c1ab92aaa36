"""Wrong gradients are found, right ones with kinks, noise and tiny values pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import spectral_norm as older_spectral_norm
from torch.nn.utils.parametrizations import spectral_norm

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.findings import Severity

X, Y = labelled()


class OffByOnePercent(torch.autograd.Function):
    """tanh, with a backward that is wrong by 1 %."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x.tanh())
        return x.tanh()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (made,) = ctx.saved_tensors
        return 1.01 * grad * (1 - made**2)


class Wrong(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return OffByOnePercent.apply(x)


class Reversed(torch.autograd.Function):
    """The identity, against which an adversary is trained."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_ctx: Any, grad: Tensor) -> Tensor:
        return -0.3 * grad


class Spike(torch.autograd.Function):
    """A step, with a surrogate of its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return (x > 0).to(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad / (1 + x.abs()) ** 2


reverse = Reversed.apply


class Adversarial(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return reverse(x)


class Spiking(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return Spike.apply(x)


class Rounded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + (x.round() - x).detach()


class Narrow(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.float().relu()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        x = x.view(len(x), 4, 8)
        return (x + self.attention(x, x, x)[0]).flatten(1)


def checked(*layers: nn.Module, loss: Any = F.cross_entropy) -> Any:
    return probed(case_of(classifier(*layers), (X, Y), loss), "gradient-check")


def test_a_backward_that_is_wrong_by_one_percent_is_found():
    found = finding(checked(nn.ReLU(), Wrong()), "G005")
    assert found.severity is Severity.ERROR
    assert found.evidence.site.fqn.startswith("0.")
    assert "OffByOnePercent" in found.evidence.cause
    assert found.evidence.numbers["error"] == pytest.approx(0.01, rel=0.5)


@pytest.mark.parametrize(
    "layers",
    [
        (nn.ReLU(),),
        (nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout()),
        (nn.Unflatten(1, (2, 4, 4)), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 32)),
        (nn.LayerNorm(32), nn.GELU(), nn.GroupNorm(4, 32)),
        (Attention(),),
        (spectral_norm(nn.Linear(32, 32)), nn.ReLU()),
        (older_spectral_norm(nn.Linear(32, 32)), nn.ReLU()),
        tuple(m for _ in range(10) for m in (nn.Linear(32, 32), nn.Sigmoid())),
    ],
)
def test_right_gradients_pass(layers: tuple[nn.Module, ...]):
    run = checked(*layers)
    assert reason(run) == ""
    assert codes(run) == []
    assert run.series("probe.gradient_error")[0].last < 1e-5


def test_the_row_of_an_embedding_that_stands_for_padding_is_left_out():
    words = torch.randint(0, 5, (16, 6), generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(nn.Embedding(5, 8, padding_idx=0), nn.Flatten(), nn.Linear(48, 4))
    run = probed(case_of(model, (words, torch.arange(16) % 4), F.cross_entropy), "gradient-check")
    assert reason(run) == ""
    assert codes(run) == []


def test_a_straight_through_estimator_is_information():
    assert finding(checked(Rounded()), "G005").severity is Severity.INFO


def test_what_is_not_computed_in_float64_is_not_compared():
    assert reason(checked(Narrow())).startswith("in float64 it fails") or "less than" in reason(
        checked(Narrow())
    )


@pytest.mark.parametrize(
    ("layer", "function"), [(Adversarial(), Reversed), (Spiking(), Spike)], ids=["identity", "step"]
)
def test_a_backward_for_what_needs_none_is_information(layer: nn.Module, function: Any):
    before = function.forward
    found = finding(checked(layer), "G005")
    assert found.severity is Severity.INFO
    assert function.__name__ in str(found.evidence.cause)
    assert function.forward is before
