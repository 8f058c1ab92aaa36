"""Whether some terms of a loss keep another from being learned."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, codes, finding, labelled, probed, reason
from traindx.preflight.terms import terms_of
from traindx.run import Run

X, Y = labelled(24, 12, 5)
MIX = torch.randn(2, 12, generator=torch.Generator().manual_seed(2))
PLANE = X[:, :2] @ MIX / 1.5
"""Points that two numbers tell."""
Loss = Callable[[tuple[Tensor, ...], Tensor], Tensor]


class Variational(nn.Module):
    """A small variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 8))
        self.decoder = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 12))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_var = self.encoder(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (log_var / 2).exp()
        return self.decoder(z), mean, log_var


def divergence(mean: Tensor, log_var: Tensor) -> Tensor:
    return 0.5 * (mean.square() + log_var.exp() - log_var - 1).sum(1).mean()


def look(loss: Loss, model: nn.Module, x: Tensor, target: Tensor) -> Run:
    return probed(case_of(model, (x, target), loss), "loss-terms")


@pytest.mark.slow
def test_a_divergence_that_outweighs_the_data_is_told():
    def loss(output: tuple[Tensor, ...], x: Tensor) -> Tensor:
        made, mean, log_var = output
        return F.mse_loss(made, x) + 20 * divergence(mean, log_var)

    run = look(loss, Variational(), PLANE, PLANE)
    assert codes(run) == ["L012"]
    found = finding(run, "L012")
    assert "term 1 of 2 in the loss of net (`mse_loss`, weight 1)" in found.evidence.message
    assert found.evidence.numbers["left"] > 0.9
    assert found.evidence.numbers["alone"] < 0.5


@pytest.mark.slow
def test_terms_that_are_reduced_alike_are_not():
    def loss(output: tuple[Tensor, ...], x: Tensor) -> Tensor:
        made, mean, log_var = output
        data = F.mse_loss(10 * made, 10 * x, reduction="sum") / len(x)
        return data + divergence(mean, log_var)

    run = look(loss, Variational(), PLANE, PLANE)
    assert not codes(run)
    assert not reason(run)


class Tasks(nn.Module):
    """Two answers from one body."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.classes, self.value = nn.Linear(12, 32), nn.Linear(32, 5), nn.Linear(32, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(x).relu()
        return self.classes(h), self.value(h)


def test_two_tasks_of_a_like_scale_are_not():
    def loss(output: tuple[Tensor, ...], y: Tensor) -> Tensor:
        return F.cross_entropy(output[0], y) + 0.5 * F.mse_loss(output[1], y.float()[:, None])

    run = look(loss, Tasks(), X, Y)
    assert not codes(run)
    assert not reason(run)


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        (
            lambda o, y: F.cross_entropy(o[0], y),
            "the loss is no sum with a term whose least value is known",
        ),
        (
            lambda o, y: 0.95 * F.cross_entropy(o[0], y) + 0.05 * F.cross_entropy(o[0], y.flip(0)),
            "the loss is no sum with a term whose least value is known",
        ),
        (
            lambda o, y: 1e-6 * F.cross_entropy(o[0], y) + (-o[0].square().mean()),
            "the other terms of the loss may fall without end",
        ),
    ],
)
def test_sums_that_cannot_be_judged_say_why(loss: Loss, why: str):
    run = look(loss, Tasks(), X, Y)
    assert reason(run) == why
    assert not codes(run)


def test_a_loss_is_parted_into_what_is_added_and_its_weights():
    def loss(output: tuple[Tensor, ...], y: Tensor) -> Tensor:
        data = F.cross_entropy(output[0], y)
        value = F.mse_loss(output[1], y.float()[:, None], reduction="sum") / len(y)
        return (data + 0.5 * value - 3.0 * (1.0 - output[0].square().mean())) / 2

    case = case_of(Tasks(), (X, Y), loss)
    total, terms = terms_of(case, case.output())
    assert [term.weight for term in terms] == [0.5, 0.25 / 24, 1.5]
    assert [term.compared and term.compared.function for term in terms] == [
        "cross_entropy", "mse_loss", None,
    ]  # fmt: skip
    summed = sum(term.weight * term.value.item() for term in terms)
    assert summed - 1.5 == pytest.approx(total.item(), rel=1e-6)  # a constant trains nothing
