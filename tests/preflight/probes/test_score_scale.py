"""How large the similarities in a loss can become."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, codes, finding, probed, reason
from traindx.run import Run

SAMPLES, FEATURES = 64, 16
X = torch.randn(SAMPLES, FEATURES, generator=torch.Generator().manual_seed(0))
SAME = torch.arange(SAMPLES)

Scores = Callable[[Tensor, Tensor], Tensor]


class Towers(nn.Module):
    """Two encoders of one thing."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(FEATURES, 8), nn.Linear(FEATURES, 8)
        self.scale = nn.Parameter(torch.tensor(0.05))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.a(x), self.b(x), self.scale


def look(scores: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Run:
    def loss(output: tuple[Tensor, Tensor, Tensor], same: Tensor) -> Tensor:
        return F.cross_entropy(scores(*output), same)

    return probed(case_of(Towers(), (X, SAME), loss), "score-scale")


def unit(x: Tensor) -> Tensor:
    return F.normalize(x, dim=-1)


def by_hand(x: Tensor) -> Tensor:
    return x / x.norm(dim=1, keepdim=True).clamp_min(1e-8)


@pytest.mark.parametrize(
    "scores",
    [
        lambda a, b, _: 0.1 * (unit(a) @ unit(b).T),
        lambda a, b, _: unit(a) @ unit(b).t() * torch.tensor(0.1),
        lambda a, b, _: torch.einsum("nd,md->nm", unit(a), unit(b)) / 10,
        lambda a, b, _: F.cosine_similarity(a[:, None], b[None], dim=-1) * 0.1,
        lambda a, b, _: torch.mm(by_hand(a), by_hand(b).T).mul(0.1),
        lambda a, b, _: F.linear(unit(a), unit(b)) * 0.1,
    ],
)
def test_a_temperature_that_multiplies_is_told(scores: Callable[..., Tensor]):
    run = look(scores)
    assert codes(run) == ["L020"]
    numbers = finding(run, "L020").evidence.numbers
    assert numbers["bound"] == pytest.approx(0.1, rel=1e-3)
    assert numbers["least_loss"] == pytest.approx(math.log(1 + 63 * math.exp(-0.2)), rel=1e-3)


def test_the_bound_is_reached_by_the_best_vectors_there_are():
    """The least loss in the other way: by the scores themselves."""
    best = torch.full((1, 64), -0.1).index_fill(1, torch.tensor([0]), 0.1)
    least = F.cross_entropy(best, torch.zeros(1, dtype=torch.long)).item()
    numbers = finding(look(lambda a, b, _: 0.1 * (unit(a) @ unit(b).T)), "L020").evidence.numbers
    assert numbers["least_loss"] == pytest.approx(least, rel=1e-4)


def test_scores_that_are_left_out_are_not_counted():
    """Two views of each sample, of which none is compared with itself."""

    def scores(a: Tensor, b: Tensor, _: Tensor) -> Tensor:
        both = unit(torch.cat((a, b)))
        own = torch.eye(len(both), dtype=torch.bool)
        return ((both @ both.T) * 0.1).masked_fill(own, float("-inf"))[:SAMPLES].roll(1, 0)

    numbers = finding(look(scores), "L020").evidence.numbers
    assert numbers["least_loss"] == pytest.approx(math.log(1 + 126 * math.exp(-0.2)), rel=1e-3)


def test_a_temperature_of_a_thousandth_is_told():
    found = finding(look(lambda a, b, _: unit(a) @ unit(b).T / 1e-3), "L020")
    assert "only the greatest counts" in found.evidence.message


@pytest.mark.parametrize(
    "scores",
    [
        lambda a, b, _: unit(a) @ unit(b).T / 0.1,
        lambda a, b, _: unit(a) @ unit(b).T / 0.5,
        lambda a, b, _: unit(a) @ unit(b).T * 30,
    ],
)
def test_usual_temperatures_are_not(scores: Callable[..., Tensor]):
    assert not codes(look(scores))


@pytest.mark.parametrize(
    "scores",
    [
        lambda a, b, _: 0.1 * (a @ b.T),
        lambda a, b, scale: scale * (unit(a) @ unit(b).T),
        lambda a, b, scale: scale.exp() * (unit(a) @ unit(b).T),
        lambda a, b, _: F.layer_norm(a, (8,)) @ unit(b).T * 0.1,
    ],
)
def test_scores_that_can_grow_have_no_bound(scores: Callable[..., Tensor]):
    run = look(scores)
    assert not codes(run)
    assert reason(run) == "the loss compares no similarities of vectors of one length"


def test_a_queue_of_normalized_vectors_is_bounded():
    queue = unit(torch.randn(100, 8, generator=torch.Generator().manual_seed(1))).T
    assert codes(look(lambda a, _b, _s: unit(a) @ queue * 0.07)) == ["L020"]
    assert not codes(look(lambda a, _b, _s: unit(a) @ queue / 0.07))


def test_a_loss_written_by_hand_is_read():
    def loss(output: tuple[Tensor, Tensor, Tensor], _same: Tensor) -> Tensor:
        a, b, _ = output
        scores = torch.exp(unit(a) @ unit(b).T * 0.1)
        return -(scores.diagonal() / scores.sum(1)).log().mean()

    run = probed(case_of(Towers(), (X, SAME), loss), "score-scale")
    assert finding(run, "L020").evidence.numbers["bound"] == pytest.approx(0.1, rel=1e-3)
