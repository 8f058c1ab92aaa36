"""Whether a model in evaluation makes the same of the same batch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.findings import Severity
from traindx.run import Run


def look(*hidden: nn.Module) -> Run:
    case = case_of(classifier(*hidden), labelled(), nn.CrossEntropyLoss())
    return probed(case, "evaluation-repeats")


class Drops(nn.Module):
    """Dropout by a function."""

    def __init__(self, *, told: bool) -> None:
        super().__init__()
        self.told = told

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, 0.3, training=self.training) if self.told else F.dropout(x, 0.3)


class Hidden(nn.Module):
    """Its dropout stands in a plain list, out of reach of `eval()`."""

    def __init__(self) -> None:
        super().__init__()
        self.several = [nn.Dropout(0.3)]

    def forward(self, x: Tensor) -> Tensor:
        return self.several[0](x)


class Noise(nn.Module):
    """Adds noise, in evaluation, too, or in training only."""

    def __init__(self, *, always: bool) -> None:
        super().__init__()
        self.always = always

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.randn_like(x) if self.always or self.training else x


class Remembers(nn.Module):
    """Carries something on from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.before = 0.0

    def forward(self, x: Tensor) -> Tensor:
        made = x + self.before
        self.before = self.before + 1.0
        return made


def test_dropout_that_is_not_told_of_evaluation_is_found_where_it_stands():
    found = finding(look(Drops(told=False)), "E004")
    assert found.severity is Severity.WARNING
    assert found.evidence.site.fqn == "1"
    assert "training=self.training" in found.evidence.fix


def test_dropout_that_is_told_is_not_reported():
    assert codes(look(Drops(told=True), nn.Dropout(0.5))) == []


def test_a_module_that_eval_does_not_reach_is_found():
    assert finding(look(Hidden()), "E004").severity is Severity.WARNING


def test_other_random_numbers_are_told_as_information():
    found = finding(look(Noise(always=True)), "E004")
    assert found.severity is Severity.INFO
    assert "random numbers" in found.evidence.cause
    assert codes(look(Noise(always=False))) == []


def test_what_a_call_leaves_behind_is_told_as_information():
    found = finding(look(Remembers()), "E004")
    assert found.severity is Severity.INFO
    assert "leaves something behind" in found.evidence.cause


def test_a_model_that_returns_no_real_numbers_says_so():
    class Picks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(20, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x).argmax(1)

    run = probed(case_of(Picks(), labelled()[0]), "evaluation-repeats")
    assert reason(run) == "the model returns no real numbers"
