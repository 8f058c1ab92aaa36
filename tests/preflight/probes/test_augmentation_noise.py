"""What of a data set's samples is random, and how much of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.findings import Severity
from traindx.preflight.case import Loaders
from traindx.preflight.probes import augmentation_noise
from traindx.run import Run

Augment = Callable[[Tensor], Tensor]


class Augmented(Dataset[Any]):
    def __init__(self, augment: Augment, *, scale: float = 1.0, clean: bool = False) -> None:
        self.x = scale * torch.randn(200, 400, generator=torch.Generator().manual_seed(0))
        self.augment, self.clean = augment, clean

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, place: int) -> Any:
        return self.augment(self.x[place]), self.x[place] if self.clean else place % 10


@pytest.fixture(autouse=True)
def as_many_as_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine fewer would be read in the time there is."""
    monkeypatch.setattr(augmentation_noise, "_SECONDS", 60.0)


def noise(size: float) -> Augment:
    return lambda x: x + size * torch.randn_like(x)


def run_of(dataset: Any) -> Run:
    case = case_of(classifier(), labelled(), F.cross_entropy)
    loaders = Loaders(DataLoader(dataset, batch_size=32))
    return probed(replace(case, loaders=loaders), "augmentation-noise")


def test_noise_that_drowns_the_data_is_told():
    found = finding(run_of(Augmented(noise(20))), "L010")
    assert found.severity is Severity.ERROR
    assert found.evidence.numbers["random"] == pytest.approx(20, rel=0.05)
    assert found.evidence.numbers["lasting"] == pytest.approx(1, rel=0.5)


def erased(x: Tensor) -> Tensor:
    return torch.where(torch.rand_like(x) < 0.02, 255 * torch.rand_like(x), x)


def test_erased_places_full_of_grey_levels_are_told():
    assert codes(run_of(Augmented(erased))) == ["L010"]


def cut(x: Tensor) -> Tensor:
    return x.roll(int(torch.randint(400, ())))


def simulated(x: Tensor) -> Tensor:
    return 20 * torch.randn_like(x)


@pytest.mark.parametrize(
    "dataset",
    [
        Augmented(noise(0.3)),
        Augmented(noise(20), scale=60),
        Augmented(cut),
        Augmented(simulated),
    ],
    ids=["some noise", "grey levels", "crops", "simulated"],
)
def test_what_is_meant_is_not(dataset: Any):
    run = run_of(dataset)
    assert (reason(run), codes(run)) == ("", [])


def test_the_clean_input_as_target_is_left_alone():
    expected = "the data hold no inputs as tensors of floats, or their targets"
    assert reason(run_of(Augmented(noise(20), clean=True))) == expected


def test_data_that_are_the_same_each_time_need_no_look():
    assert reason(run_of(TensorDataset(*labelled()))) == (
        "the data are the same each time they are read"
    )
