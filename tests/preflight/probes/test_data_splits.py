"""Data sets that overlap, and data that were scaled together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.preflight.case import Loaders

NAME = "data-splits"
BATCH = labelled()


def _drawn(samples: int, seed: int = 0) -> Tensor:
    return 3 + 2 * torch.randn(samples, 20, generator=torch.Generator().manual_seed(seed))


def run_of(training: Any, **others: Any):
    loaders = Loaders(DataLoader(training), {n: DataLoader(d) for n, d in others.items()})
    return probed(replace(case_of(classifier(), BATCH, F.cross_entropy), loaders=loaders), NAME)


class Listed(Dataset[Any]):
    """A data set that is read sample by sample, perhaps with noise."""

    def __init__(self, rows: Tensor, noise: float = 0.0) -> None:
        self.rows, self.noise = rows, noise

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        row = self.rows[place]
        return row + self.noise * torch.randn(20), 0


@pytest.mark.parametrize("kind", [TensorDataset, Listed])
@pytest.mark.parametrize(("shared", "severity"), [(60, "error"), (10, "warning")])
def test_shared_samples_are_told(kind: Any, shared: int, severity: str) -> None:
    rows = _drawn(800)
    found = finding(run_of(kind(rows[:600]), val=kind(rows[600 - shared : 800])), "L009")
    assert found.severity == severity
    assert found.evidence.numbers["share"] == pytest.approx(shared / (200 + shared))


@pytest.mark.parametrize(
    "form",
    [
        lambda row: (3, row),
        lambda row: {"tokens": row.tolist(), "label": 1},
        lambda row: (row.numpy(), 1),
    ],
)
def test_samples_of_any_form_are_compared(form: Any) -> None:
    rows = [form(row) for row in torch.randint(0, 9, (300, 20))]
    assert codes(run_of(rows[:250], val=rows[200:300])) == ["L009"]
    assert not codes(run_of(rows[:250], val=rows[250:300]))


def test_one_data_set_for_both_is_told() -> None:
    data = TensorDataset(_drawn(200))
    assert "same data set" in finding(run_of(data, val_loader=data), "L009").evidence.cause


def test_two_random_splits_of_one_data_set_are_told() -> None:
    data = TensorDataset(_drawn(500))
    first, _ = random_split(data, [400, 100], generator=torch.Generator().manual_seed(1))
    _, second = random_split(data, [400, 100], generator=torch.Generator().manual_seed(2))
    assert codes(run_of(first, val=second)) == ["L009"]


def test_a_split_by_index_is_not() -> None:
    data = TensorDataset(_drawn(500))
    assert not codes(run_of(Subset(data, range(400)), val=Subset(data, range(400, 500))))


def test_a_loader_for_measuring_on_training_data_is_not() -> None:
    data = TensorDataset(_drawn(200))
    run = run_of(data, train_eval_loader=data)
    assert reason(run) == "no loader besides that of training is visible"


def test_small_worlds_whose_samples_coincide_are_not() -> None:
    rows = torch.randint(0, 3, (600, 3), generator=torch.Generator().manual_seed(0))
    assert not codes(run_of(TensorDataset(rows[:500]), val=TensorDataset(rows[500:])))


def test_scaling_by_statistics_of_all_data_is_told() -> None:
    rows = _drawn(600)
    rows = (rows - rows.mean(0)) / rows.std(0)
    found = finding(run_of(TensorDataset(rows[:500]), val=TensorDataset(rows[500:])), "L015")
    assert found.evidence.numbers["times"] > 1000


def test_scaling_by_one_mean_of_all_data_is_told() -> None:
    rows = _drawn(600) * torch.linspace(1, 2, 20)
    rows = (rows - rows.mean()) / rows.std()
    assert codes(run_of(TensorDataset(rows[:500]), val=TensorDataset(rows[500:]))) == ["L015"]


@pytest.mark.parametrize("scaled", [True, False])
def test_scaling_by_the_training_split_alone_is_not(scaled: bool) -> None:
    rows = _drawn(600)
    if scaled:
        rows = (rows - rows[:500].mean(0)) / rows[:500].std(0)
    assert not codes(run_of(TensorDataset(rows[:500]), val=TensorDataset(rows[500:])))


def test_data_that_change_each_time_cannot_be_compared() -> None:
    rows = _drawn(100)
    run = run_of(Listed(rows, noise=0.1), val=Listed(rows))
    assert reason(run) == "the training data cannot be read by place, or change each time"


def test_without_a_loader_there_is_nothing_to_compare() -> None:
    run = probed(case_of(classifier(), BATCH, F.cross_entropy), NAME)
    assert reason(run) == "no data loader was seen"
