"""A case from model, batch and loss, in the forms that programs have them in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import traindx
from tests.preflight.cases import case_of, classifier, labelled
from traindx.errors import UsageError, WrongTypeError
from traindx.findings import Severity
from traindx.preflight.case import DoesNotApplyError
from traindx.testing import assert_trainable

X, Y = labelled()


@dataclass
class Batch:
    """A batch as an object."""

    x: Tensor
    y: Tensor


class Output(NamedTuple):
    """An output with names."""

    logits: Tensor
    hidden: Tensor


class OfObject(nn.Module):
    """Takes a batch as a whole, and returns several tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.body = classifier()

    def forward(self, batch: Batch) -> Output:
        return Output(self.body(batch.x), batch.x.sum(1))


class WithLoss(nn.Module):
    """Returns a loss where it is given labels."""

    def __init__(self) -> None:
        super().__init__()
        self.body = classifier()

    def forward(self, features: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.body(features)
        return {"logits": logits, "loss": F.cross_entropy(logits, labels)}


def of_object(output: Output, batch: Batch) -> Tensor:
    return F.cross_entropy(output.logits, batch.y)


def of_output(output: Tensor) -> Tensor:
    return output.square().mean()


@pytest.mark.parametrize(
    ("model", "batch", "loss", "targets"),
    [
        (classifier(), (X, Y), nn.CrossEntropyLoss(), 1),
        (classifier(), [X, Y], F.cross_entropy, 1),
        (classifier(), X, of_output, 0),
        (classifier(features=20, classes=20), X, nn.MSELoss(), 1),
        (OfObject(), Batch(X, Y), of_object, 2),
        (WithLoss(), {"features": X, "labels": Y}, None, 0),
    ],
)
def test_a_batch_in_any_form_has_its_loss_and_its_parts(
    model: nn.Module, batch: Any, loss: Any, targets: int
) -> None:
    case = case_of(model, batch, loss)
    assert case.batch_size == 32
    assert len(case.targets) == targets
    whole, part = case.loss(), case.subset(4).loss()
    assert whole.dim() == part.dim() == 0
    assert whole.item() != part.item()
    assert case.double().loss().dtype == torch.float64


def test_a_loss_of_some_samples_is_that_of_those_samples() -> None:
    case = case_of(classifier(), (X, Y), nn.CrossEntropyLoss())
    index = torch.tensor([3, 1, 30])
    expected = F.cross_entropy(case.model(X[index]), Y[index])
    assert torch.equal(case.take(index).loss(), expected)


def test_a_model_without_a_loss_says_so() -> None:
    case = case_of(classifier(), (X,))
    assert case.why_no_loss == "no loss was given, and the model returns none"
    with pytest.raises(DoesNotApplyError):
        case.loss()


def test_a_loss_that_knows_the_batch_size_cannot_take_some_samples() -> None:
    case = case_of(classifier(), (X, Y), lambda o, t: F.cross_entropy(o.view(32, 10), t))
    with pytest.raises(DoesNotApplyError, match="the loss of 4 samples alone cannot be computed"):
        case.subset(4)


@pytest.mark.parametrize(
    ("model", "batch", "loss", "words"),
    [
        (classifier(), (X[:, :3], Y), nn.CrossEntropyLoss(), "The model fails on its batch"),
        (classifier(), (X, Y[:3]), nn.CrossEntropyLoss(), "The loss fails on the model's output"),
        (classifier(), (X, Y), nn.CrossEntropyLoss(reduction="none"), "gives no single number"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(
    model: nn.Module, batch: Any, loss: Any, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        case_of(model, batch, loss)


@pytest.mark.parametrize(("model", "loss"), [(len, None), (classifier(), 3)])
def test_another_kind_is_refused(model: Any, loss: Any) -> None:
    with pytest.raises(WrongTypeError):
        case_of(model, (X, Y), loss)


# -- the public functions --------------------------------------------------------------------------


def test_preflight_judges_and_names_the_model_by_its_variable() -> None:
    net = classifier()
    run = traindx.preflight(net, (X * 100, Y), nn.CrossEntropyLoss(), quick=True)
    assert run.verdict is not None
    assert [f.evidence.site.model for f in run.verdict.findings if f.code == "L001"] == ["net"]
    assert run.is_preflight
    assert (run.steps, run.step) == (0, -1)


def test_a_test_fails_with_the_report() -> None:
    net, batch = classifier(), (X * 100, Y)
    with pytest.raises(AssertionError, match="L001 initial-loss-off"):
        assert_trainable(net, batch, nn.CrossEntropyLoss(), quick=True, fail_on=Severity.WARNING)


def test_a_test_passes_where_nothing_is_as_bad_or_it_is_to_be_ignored() -> None:
    net, loss = classifier(), nn.CrossEntropyLoss()
    assert_trainable(net, (X, Y), loss, quick=True)
    assert_trainable(net, (X * 100, Y), loss, quick=True, fail_on="warning", ignore=["L", "F", "S"])
