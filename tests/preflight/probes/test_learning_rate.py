"""Which learning rates lower the loss, by short runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.findings import Severity
from traindx.run import Run


def look(kind: Any, lr: float, *, quick: bool = False, **options: Any) -> Run:
    model = classifier(nn.ReLU(), nn.Dropout(0.1))
    optimizer = kind(model.parameters(), lr=lr, **options)
    case = case_of(model, labelled(), nn.CrossEntropyLoss(), optimizer)
    return probed(case, "learning-rate", quick=quick)


def interval(run: Run) -> tuple[float, float]:
    (low,), (high,) = run.series("probe.lr_low"), run.series("probe.lr_high")
    return low.last, high.last


@pytest.mark.parametrize(
    ("kind", "lr"),
    [(torch.optim.Adam, 1e-7), (torch.optim.Adam, 30.0), (torch.optim.SGD, 1e-5),
     (torch.optim.SGD, 1e3)],
)  # fmt: skip
def test_a_rate_far_outside_is_told_with_the_interval(kind: Any, lr: float):
    run = look(kind, lr)
    found = finding(run, "O013")
    low, high = interval(run)
    assert found.severity is Severity.INFO
    assert low <= high
    assert not low / 10 <= lr <= high * 10
    suggested = float(found.evidence.fix.removeprefix("lr="))
    assert low * 0.9 <= suggested <= high * 1.1


@pytest.mark.parametrize(
    ("kind", "lr"),
    [(torch.optim.Adam, 1e-3), (torch.optim.AdamW, 3e-4), (torch.optim.SGD, 0.1),
     (torch.optim.SGD, 0.03)],
)  # fmt: skip
def test_a_usual_rate_is_not_reported(kind: Any, lr: float):
    assert codes(look(kind, lr)) == []


def test_the_interval_does_not_depend_on_the_rate_by_more_than_a_decade():
    first, second = interval(look(torch.optim.Adam, 1e-3)), interval(look(torch.optim.Adam, 1e-4))
    assert first == pytest.approx(second)


def test_of_a_schedule_the_rate_that_it_starts_from_counts():
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1e-6 * (step + 1))
    run = probed(case_of(model, labelled(), nn.CrossEntropyLoss(), optimizer), "learning-rate")
    (rate,) = run.series("probe.lr")
    assert rate.last == pytest.approx(1e-3)
    assert codes(run) == []


def test_optimizer_state_is_as_before():
    model = classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = labelled()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    probed(case_of(model, (x, y), nn.CrossEntropyLoss(), optimizer), "learning-rate")
    assert {int(state["step"]) for state in optimizer.state.values()} == {1}
    assert optimizer.param_groups[0]["lr"] == 1e-3


def test_a_loss_that_no_rate_lowers_says_so():
    model = classifier()
    for param in model.parameters():
        nn.init.zeros_(param)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    case = case_of(model, labelled()[0], lambda output: output.square().mean(), optimizer)
    assert reason(probed(case, "learning-rate")).startswith("no learning rate lowers")


def test_an_optimizer_that_asks_for_a_closure_says_so():
    assert "closure" in reason(look(torch.optim.LBFGS, 1.0))


def test_it_trains_and_is_left_out_where_it_must_be_quick():
    assert "--quick" in reason(look(torch.optim.SGD, 0.1, quick=True))
