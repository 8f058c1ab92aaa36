"""Workers of a loader, and the random numbers they draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from tests.preflight.cases import case_of, classifier, codes, finding, labelled, probed, reason
from traindx.preflight.case import Loaders
from traindx.run import Run

Init = Callable[[int], None]


class Noisy(Dataset[Tensor]):
    """Its numbers come from NumPy's own generator, from one of its own, or from torch."""

    def __init__(self, source: str = "numpy") -> None:
        self.source, self.own = source, np.random.default_rng(0)

    def __len__(self) -> int:
        return 64

    def __getitem__(self, place: int) -> Tensor:
        x = torch.full((20,), float(place))
        if self.source == "numpy":
            return x + torch.as_tensor(np.random.randn(20)).float()
        if self.source == "own":
            return x + torch.as_tensor(self.own.standard_normal(20)).float()
        return x + torch.randn(20) if self.source == "torch" else x


def run_of(source: str, init: Init | None = None, **options: Any) -> Run:
    loader = DataLoader(
        Noisy(source), batch_size=8, worker_init_fn=init, **{"num_workers": 2, **options}
    )
    case = case_of(classifier(), labelled(), F.cross_entropy)
    return probed(replace(case, loaders=Loaders(loader)), "worker-dice")


def same(_worker: int) -> None:
    np.random.seed(0)


def by_number(worker: int) -> None:
    np.random.seed(worker)


def as_documented(_worker: int) -> None:
    np.random.seed(torch.initial_seed() % 2**32)


@pytest.mark.parametrize(("source", "init"), [("numpy", same), ("own", None)])
def test_workers_that_draw_the_same_numbers_are_told(source: str, init: Init | None):
    assert "two workers" in finding(run_of(source, init), "L010").evidence.message


def test_passes_that_draw_the_same_numbers_are_told():
    assert "a second pass" in finding(run_of("numpy", by_number), "L010").evidence.message


def test_workers_that_are_kept_are_started_once():
    assert codes(run_of("numpy", by_number, persistent_workers=True)) == []


@pytest.mark.parametrize(
    ("source", "init"),
    [("numpy", None), ("numpy", as_documented), ("torch", None), ("none", same)],
)
def test_workers_with_numbers_of_their_own_are_not(source: str, init: Init | None):
    run = run_of(source, init)
    assert (reason(run), codes(run)) == ("", [])


def test_a_single_worker_has_nobody_to_be_like():
    assert reason(run_of("numpy", same, num_workers=1)) == (
        "the training loader has no two workers"
    )
