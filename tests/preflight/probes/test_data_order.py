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


def test_targets_that_are_no_classes_are_left_alone():
    assert reason(run_of(SORTED.float())) == "no class of each sample was read"
