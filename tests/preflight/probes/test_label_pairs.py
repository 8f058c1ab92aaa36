"""Labels that go with their own inputs, with those of another row, or with none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from tests.preflight.cases import case_of, classifier, codes, finding, probed, reason
from traindx.findings import Severity
from traindx.preflight.case import Loaders
from traindx.run import Run

NOT_FOUND = "the data and their labels were not found, row by row"


def data(rows: int = 800) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 6, generator=generator)
    return x, (x @ torch.randn(6, 4, generator=generator)).argmax(1)


def run_of(x: Tensor, y: Tensor, loaders: Loaders | None = None, take: int = 32) -> Run:
    """Of a batch of some rows in random order, with the data among the program's tensors."""
    rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))[:take]
    classes = y.dim() == 1 and not y.is_floating_point()
    loss: Any = F.cross_entropy if classes else F.mse_loss
    model = classifier(features=x.shape[1], classes=4 if classes else 1)
    case = case_of(model, (x[rows], y[rows] if classes else y[rows][:, None]), loss)
    return probed(replace(case, loaders=loaders or Loaders(tensors=(x, y))), "label-pairs")


def test_labels_of_their_own_rows_are_as_they_should_be():
    run = run_of(*data())
    assert (reason(run), codes(run)) == ("", [])


@pytest.mark.parametrize(("shift", "severity"), [(1, Severity.ERROR), (-1, Severity.WARNING)])
def test_labels_of_a_row_near_by_are_told(shift: int, severity: Severity):
    x, y = data()
    found = finding(run_of(x, y.roll(shift)), "L005")
    assert (found.severity, found.evidence.numbers["shift"]) == (severity, shift)


def test_numbers_are_labels_as_well():
    x, _ = data()
    y = x[:, 0] * x[:, 1] + x[:, 2]
    assert codes(run_of(x, y)) == []
    assert finding(run_of(x, y.roll(1)), "L005").severity is Severity.ERROR


def test_labels_in_another_order_are_told():
    """Of inputs with a structure, as images have it: many features that follow from a few."""
    x, y = data()
    generator = torch.Generator().manual_seed(2)
    pixels = (x @ torch.randn(6, 60, generator=generator)).tanh()
    assert codes(run_of(pixels, y)) == []
    found = finding(run_of(pixels, y[torch.randperm(len(y), generator=generator)]), "L005")
    assert found.severity is Severity.WARNING
    assert "shuffled" in found.evidence.cause


def test_a_curve_that_bends_often_in_many_directions_is_no_mismatch():
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(1000, 12, generator=generator)
    y = (x @ torch.randn(12, generator=generator)).sin()
    run = run_of(x, y)
    assert (reason(run), codes(run)) == ("", [])


def test_half_of_the_labels_wrong_is_noise_and_no_more():
    x, y = data()
    generator = torch.Generator().manual_seed(3)
    noise = torch.rand(len(y), generator=generator) < 0.5
    wrong = torch.randint(4, (len(y),), generator=generator)
    assert codes(run_of(x, torch.where(noise, wrong, y))) == []


def test_what_branches_to_both_sides_follows_from_its_input():
    """Its mean is zero everywhere, but not its spread."""
    generator = torch.Generator().manual_seed(4)
    x = torch.rand(800, 1, generator=generator)
    y = x[:, 0] * (1 - 2 * torch.randint(2, (800,), generator=generator))
    assert codes(run_of(x, y)) == []


def test_a_series_whose_next_value_nobody_knows_is_no_mismatch():
    """Each row holds the last values, so that it knows the label of the row before."""
    series = torch.randn(900, generator=torch.Generator().manual_seed(5))
    x, y = series.unfold(0, 6, 1)[:-1].clone(), series[6:].clone()
    assert torch.equal(x[1:, -1], y[:-1])
    assert codes(run_of(x, y)) == []


def test_features_without_a_structure_are_left_alone():
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(800, 40, generator=generator)
    y = torch.randint(4, (800,), generator=generator)
    run = run_of(x, y)
    assert (reason(run), codes(run)) == ("", [])


class Read(Dataset[tuple[Tensor, int]]):
    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        return self.x[place], int(self.y[place])


@pytest.mark.parametrize("kind", [TensorDataset, Read])
def test_the_data_of_a_loader_are_read_before_they_were_split(kind: Any):
    x, y = data()
    part = Subset(kind(x, y.roll(1)), range(799, 0, -2))
    run = run_of(x, y, Loaders(DataLoader(part, batch_size=32, shuffle=True)))
    assert finding(run, "L005").severity is Severity.ERROR


def test_labels_of_a_data_set_that_are_not_the_target_are_left_alone():
    x, y = data()
    autoencoder = case_of(classifier(features=6, classes=6), (x[:32], x[:32]), F.mse_loss)
    loaders = Loaders(DataLoader(TensorDataset(x, y.roll(1)), batch_size=32))
    assert reason(probed(replace(autoencoder, loaders=loaders), "label-pairs")) == NOT_FOUND


def test_data_that_are_not_there_are_not_looked_for():
    x, y = data()
    assert reason(run_of(x, y, Loaders(tensors=(x + 1, y)))) == NOT_FOUND
    assert reason(run_of(x, y, Loaders(tensors=(x, 3 - y)))) == NOT_FOUND
    assert reason(run_of(*data(200))) == NOT_FOUND


def test_labels_of_one_class_tell_nothing():
    x, y = data()
    run = run_of(x, torch.zeros_like(y))
    assert reason(run) == "the labels are all alike, or of too many classes"
