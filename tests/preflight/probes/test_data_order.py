"""Data that lie sorted by class, and loaders that shuffle them or do not."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from tests.preflight.cases import case_of, classifier, codes, probed, reason
from traindx.preflight.case import Loaders
from traindx.run import Run

SORTED = torch.arange(400) // 40
MIXED = SORTED[torch.randperm(400, generator=torch.Generator().manual_seed(0))]


def run_of(labels: Tensor, *, shuffle: bool = False, batch: int = 20) -> Run:
    x = torch.randn(len(labels), 20, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(x, labels)
    loader = DataLoader(data, batch_size=batch, shuffle=shuffle)
    case = case_of(classifier(), (x[:batch], labels[:batch].long()), F.cross_entropy)
    return probed(replace(case, loaders=Loaders(loader)), "data-order")


def test_classes_in_order_are_told():
    assert codes(run_of(SORTED, batch=10)) == ["L018"]


def test_mixed_data_and_short_groups_are_not():
    for labels in (MIXED, MIXED.repeat_interleave(4)):
        run = run_of(labels)
        assert (reason(run), codes(run)) == ("", [])


def test_a_loader_that_shuffles_is_left_alone():
    run = run_of(SORTED, batch=10, shuffle=True)
    assert reason(run) == "the training loader draws its samples in an order of its own"


def test_a_batch_that_is_most_of_the_data_has_no_order():
    assert reason(run_of(SORTED, batch=200)) == "no class of each sample was read"


def test_numbers_that_only_rise_or_fall_are_told():
    rising = torch.linspace(0.1, 3, 400)
    for labels in (rising, rising.flip(0)):
        assert codes(run_of(labels)) == ["L018"]


def test_a_series_that_drifts_is_left_alone():
    drifting = torch.linspace(0.1, 12, 400).sin()
    assert reason(run_of(drifting)) == "no class of each sample was read"


def test_flags_are_no_classes():
    assert reason(run_of(SORTED > 4)) == "no class of each sample was read"


def by_hand(labels: Tensor, rows: Tensor) -> Run:
    x = torch.randn(len(labels), 20, generator=torch.Generator().manual_seed(1))
    case = case_of(classifier(), (x[rows], labels[rows]), F.cross_entropy)
    return probed(replace(case, loaders=Loaders(tensors=(x, labels))), "data-order")


def test_sorted_tensors_that_are_read_row_by_row_are_told():
    assert codes(by_hand(SORTED, torch.arange(10))) == ["L018"]
    assert not codes(by_hand(MIXED, torch.arange(10)))


def test_rows_that_are_drawn_are_left_alone():
    drawn = torch.randperm(400, generator=torch.Generator().manual_seed(2))[:10]
    assert reason(by_hand(SORTED, drawn)).startswith("the data are not read by place")
