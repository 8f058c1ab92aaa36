"""A few samples are learned by heart, or not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.findings import Severity
from traindx.preflight.unregularized import Adam

X, Y = labelled()
SOFT = torch.rand(32, 10, generator=torch.Generator().manual_seed(3)).softmax(1)


def fitted(model: nn.Module, target: Any, loss: Any) -> Any:
    return probed(case_of(model, (X, target), loss), "overfit-tiny-subset")


@pytest.mark.parametrize(
    ("model", "target", "loss"),
    [
        (classifier(), Y, F.cross_entropy),
        (classifier(nn.ReLU(), nn.Dropout(0.8)), Y, nn.CrossEntropyLoss(label_smoothing=0.3)),
        (classifier(), SOFT, F.cross_entropy),
        (classifier(), Y, lambda o, t: F.cross_entropy(o, t) + 10 * o.square().mean()),
        (classifier(classes=20), X, nn.MSELoss()),
        (classifier(classes=1), (Y > 4).float()[:, None], nn.BCEWithLogitsLoss()),
    ],
)
def test_what_can_be_learned_is(model: nn.Module, target: Tensor, loss: Any):
    run = fitted(model, target, loss)
    assert reason(run) == ""
    assert codes(run) == []


class Noisy(nn.Module):
    """Classifies with noise that hides the input."""

    def __init__(self) -> None:
        super().__init__()
        self.body = classifier()

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x + 3 * torch.randn_like(x))


def test_what_a_model_draws_is_learned_with_it():
    run = fitted(Noisy(), Y, F.cross_entropy)
    assert codes(run) == []
    (fraction,) = run.series("probe.overfit_fraction")
    assert fraction.last < 0.05


def test_an_output_that_cannot_take_the_values_of_the_target_is_found():
    model = nn.Sequential(*classifier(classes=20), nn.Sigmoid())
    found = finding(fitted(model, 3 * X, nn.MSELoss()), "L004")
    assert found.severity is Severity.ERROR
    assert "cannot learn 20 samples by heart" in found.evidence.message


def test_a_loss_without_a_floor_is_not_tried():
    run = fitted(classifier(), Y, lambda o, t: -o.square().mean() + 0 * t.sum())
    assert reason(run) == "no loss whose least value is known was seen"


def test_the_steps_are_those_of_torch_s_adam():
    torch.manual_seed(0)
    ours, theirs = torch.randn(5), nn.Parameter(torch.zeros(5))
    theirs.data.copy_(ours)
    mine, optimizer = Adam([ours], lr=0.01), torch.optim.Adam([theirs], lr=0.01)
    for _ in range(5):
        gradient = torch.randn(5)
        mine.step([gradient])
        theirs.grad = gradient
        optimizer.step()
    assert torch.allclose(ours, theirs.detach(), atol=1e-6)
