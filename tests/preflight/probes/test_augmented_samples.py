"""Pictures that are turned with and without their masks, and evaluation data at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed
from traindx.findings import Severity
from traindx.preflight.case import Loaders
from traindx.preflight.probes import augmented_samples
from traindx.run import Run

Change = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class Scenes(Dataset[Any]):
    """Pictures, with masks of their size or with classes."""

    def __init__(self, change: Change, *, masks: bool = True) -> None:
        self.x = torch.randn(40, 1, 8, 8, generator=torch.Generator().manual_seed(0))
        self.y = (self.x[:, 0] > 0).float() if masks else torch.arange(40)
        self.change = change

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, place: int) -> Any:
        return self.change(self.x[place], self.y[place])


@pytest.fixture(autouse=True)
def as_many_as_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine fewer would be read in the time there is."""
    monkeypatch.setattr(augmented_samples, "_SECONDS", 60.0)


def plain(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x, y


def at_times(turned: Change) -> Change:
    return lambda x, y: turned(x, y) if torch.rand(()) < 0.5 else (x, y)


def noisy(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x + 0.3 * torch.randn_like(x), y


def anew(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return torch.randn_like(x), y


def run_of(training: Dataset[Any], **others: Dataset[Any]) -> Run:
    case = case_of(classifier(), labelled(), F.cross_entropy)
    loaders = {name: DataLoader(data, batch_size=8) for name, data in others.items()}
    loading = Loaders(DataLoader(training, batch_size=8), loaders)
    torch.manual_seed(0)
    return probed(replace(case, loaders=loading), "augmented-samples")


@pytest.mark.parametrize(
    "turned",
    [
        lambda x, y: (x.flip(-1), y),
        lambda x, y: (x.flip(-2), y),
        lambda x, y: (x, y.flip(-1)),
        lambda x, y: (x.rot90(1, (-2, -1)), y),
    ],
)
def test_one_that_is_turned_without_the_other_is_told(turned: Change):
    found = finding(run_of(Scenes(at_times(turned))), "L010")
    assert found.severity is Severity.ERROR


@pytest.mark.parametrize(
    "change",
    [
        plain,
        noisy,
        at_times(lambda x, y: (x.flip(-1), y.flip(-1))),
        at_times(lambda x, y: (x + 1, y)),
    ],
)
def test_both_that_are_turned_together_are_not(change: Change):
    assert not codes(run_of(Scenes(change)))


def test_a_picture_of_a_class_may_be_turned():
    assert not codes(run_of(Scenes(at_times(lambda x, y: (x.flip(-1), y)), masks=False)))


def test_evaluation_data_that_are_augmented_are_told():
    data = Scenes(noisy, masks=False)
    found = finding(run_of(data, test_loader=data), "L010")
    assert found.evidence.message.startswith("100% of the samples of `test_loader` are other")
    assert found.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("name", "change"), [("val_loader", plain), ("unlabeled", noisy), ("val_loader", anew)]
)
def test_other_data_are_not(name: str, change: Change):
    run = run_of(Scenes(noisy, masks=False), **{name: Scenes(change, masks=False)})
    assert not codes(run)
