"""Probe: whether the workers of the training's loader draw the same random numbers.

Two workers are started as the loader starts its own, and asked for the same samples, twice each.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, probe
from traindx.preflight.structures import named_tensors
from traindx.records import Item, Scalar, Site

_SAMPLES = 4
_SECONDS = 20
"""After which a worker is given up."""


@probe(
    needs=("loaders",),
    writes=("probe.workers_alike", "probe.passes_alike"),
    passes=0.0,
    seconds=lambda case: 0.3 if _workers(case) > 1 else 0.0,
)
def worker_dice(case: Case) -> Iterator[Item]:
    """Whether two workers, and two passes, make the same of the same samples, though at random."""
    loader = case.loaders.training
    if _workers(case) < 2:
        raise DoesNotApplyError(say("the training loader has no two workers"))
    if isinstance(loader.dataset, IterableDataset) or multiprocessing.get_start_method() != "fork":
        raise DoesNotApplyError(say("the workers are not forked, or read a stream"))
    first, second = _pass(loader), _pass(loader)
    site = Site(case.name)
    random = not _same(first[0], first[2])
    alike = random and _same(first[0], first[1]) and _same(first[2], first[3])
    again = random and _same(first[0], second[0]) and _same(first[1], second[1])
    yield Scalar(STEP, "probe.workers_alike", alike, site)
    yield Scalar(STEP, "probe.passes_alike", again and not loader.persistent_workers, site)


def _workers(case: Case) -> int:
    return int(getattr(case.loaders.training, "num_workers", 0))


def _pass(loader: Any) -> list[list[Tensor]]:
    """Four batches of the same samples: of worker 0, of worker 1, and of both again."""
    some = list(range(min(_SAMPLES, len(loader.dataset))))
    twin = DataLoader(
        loader.dataset,
        batch_sampler=[some] * 4,
        num_workers=2,
        collate_fn=loader.collate_fn,
        worker_init_fn=loader.worker_init_fn,
        timeout=_SECONDS,
    )
    batches = [[t.clone() for _, t in named_tensors(batch)] for batch in cast("Any", twin)]
    if len(batches) < 4 or not batches[0]:
        raise DoesNotApplyError(say("the workers give no tensors"))
    return batches


def _same(some: list[Tensor], others: list[Tensor]) -> bool:
    return len(some) == len(others) and all(map(torch.equal, some, others))
