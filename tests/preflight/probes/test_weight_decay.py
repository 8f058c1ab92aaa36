"""How fast decay pulls at normalization layers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.preflight.cases import case_of, classifier, codes, labelled, probed, reason
from traindx.records import Site

NAME = "weight-decay"


def run_of(kind: Any, *, split: bool = False, **options: float):
    model = classifier(nn.BatchNorm1d(32), nn.ReLU())
    groups: Any = model.parameters()
    if split:
        params = list(model.parameters())
        rest = {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0}
        groups = [{"params": [p for p in params if p.dim() > 1]}, rest]
    return probed(case_of(model, labelled(), F.cross_entropy, kind(groups, **options)), NAME)


def test_strong_decay_of_all_parameters_is_told_with_its_half_life() -> None:
    run = run_of(torch.optim.AdamW, lr=0.1, weight_decay=0.1)
    assert codes(run) == ["O010"]
    half_life = run.at("probe.decay_half_life", Site("net"))
    assert half_life is not None
    assert half_life.last == pytest.approx(math.log(2) / 0.01)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"lr": 0.1, "weight_decay": 5e-4}),
        (torch.optim.AdamW, {"lr": 3e-4, "weight_decay": 0.1}),
        (torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.1, "split": True}),
    ],
)
def test_usual_decay_and_groups_without_it_are_not(kind: Any, options: dict[str, Any]) -> None:
    assert not codes(run_of(kind, **options))


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (torch.optim.SGD, {"lr": 0.1}, "the optimizer has no weight decay"),
        (torch.optim.Adam, {"weight_decay": 0.1}, "how fast the decay of Adam is depends"),
    ],
)
def test_it_says_where_it_does_not_apply(kind: Any, options: dict[str, Any], words: str) -> None:
    assert words in reason(run_of(kind, **options))
