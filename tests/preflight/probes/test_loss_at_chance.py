"""The loss before training, of losses whose value at chance is known."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.preflight.cases import case_of, classifier, codes, labelled, probed, reason
from traindx.records import Site

X, Y = labelled()
YES = (Y > 4).float()[:, None]


@pytest.mark.parametrize(
    ("model", "target", "loss", "chance"),
    [
        (classifier(), Y, nn.CrossEntropyLoss(), math.log(10)),
        (classifier(), Y, nn.CrossEntropyLoss(reduction="sum"), math.log(10)),
        (classifier(), Y, lambda o, t: F.nll_loss(o.log_softmax(1), t) + o.square().sum(), None),
        (classifier(classes=1), YES, nn.BCEWithLogitsLoss(), math.log(2)),
    ],
)
def test_a_fresh_model_is_near_chance(model: Any, target: Any, loss: Any, chance: float | None):
    run = probed(case_of(model, (X, target), loss), "loss-at-chance")
    values = run.at("probe.initial_loss", Site("net")), run.at("probe.chance_loss", Site("net"))
    assert values[0] is not None
    assert values[1] is not None
    assert values[1].last == pytest.approx(chance or math.log(10))
    assert values[0].last == pytest.approx(values[1].last, abs=0.2)
    assert "L001" not in codes(run)


def test_an_input_that_is_not_scaled_shows():
    assert codes(probed(case_of(classifier(), (100 * X, Y), F.cross_entropy), "loss-at-chance"))


def test_a_loss_in_the_model_is_seen():
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = classifier()

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": F.cross_entropy(self.body(x), labels)}

    run = probed(case_of(WithLoss(), {"x": X, "labels": Y}), "loss-at-chance")
    assert run.series("probe.initial_loss")


def test_a_regression_has_no_chance():
    model = classifier(classes=20)
    run = probed(case_of(model, (X, X), nn.MSELoss()), "loss-at-chance")
    assert reason(run) == "no loss whose value at chance is known was seen"


def test_a_guess_may_know_the_place_of_the_positive() -> None:
    """Of a contrastive loss every target is 0, and a score for views of one thing is high."""
    first = torch.zeros_like(Y)
    near = nn.Sequential(classifier(), _Shift(3.0))
    assert "L001" not in codes(probed(case_of(near, (X, first), F.cross_entropy), "loss-at-chance"))
    some = first.index_fill(0, torch.tensor([0]), 1)
    assert "L001" in codes(probed(case_of(near, (X, some), F.cross_entropy), "loss-at-chance"))


class _Shift(nn.Module):
    def __init__(self, size: float) -> None:
        super().__init__()
        self.size = size

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return scores + self.size * F.one_hot(torch.tensor(0), 10)


class Margin(nn.Module):
    """Scores of angles, from which the own class must be apart by a margin, as in ArcFace."""

    def __init__(self, margin: float) -> None:
        super().__init__()
        self.body, self.margin = classifier(), margin

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        scores = 30 * F.normalize(self.body(x))
        return F.cross_entropy(scores - 30 * self.margin * F.one_hot(labels, 10), labels)


def test_scores_with_a_margin_at_the_target_have_no_chance() -> None:
    def judged(margin: float) -> Any:
        case = case_of(Margin(margin), {"x": X, "labels": Y}, lambda out: out)
        return probed(case, "loss-at-chance")

    assert "target" in reason(judged(0.3))
    assert "L001" in codes(judged(0.0))
