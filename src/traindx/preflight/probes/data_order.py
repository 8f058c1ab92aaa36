"""Probe: whether a loader that does not shuffle reads samples that lie sorted by class."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.data import IterableDataset, SequentialSampler

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, probe
from traindx.records import Item, Scalar, Site

_PAIRS = 64
"""Pairs of samples that are looked at, evenly spaced over the data."""
_FEWEST = 16
_SECONDS = 0.5
"""For reading them."""


@probe(
    needs=("loaders",),
    writes=("probe.neighbours_alike", "probe.any_two_alike"),
    passes=0.0,
    seconds=lambda _case: _SECONDS / 5,
)
def data_order(case: Case) -> Iterator[Item]:
    """How often samples half a batch apart are of one class, beside any two samples."""
    loader = case.loaders.training
    size, dataset = getattr(loader, "batch_size", None), getattr(loader, "dataset", None)
    if type(getattr(loader, "sampler", None)) is not SequentialSampler:
        raise DoesNotApplyError(say("the training loader draws its samples in an order of its own"))
    if dataset is None or isinstance(dataset, IterableDataset) or not size or size < 4:
        raise DoesNotApplyError(say("the data are not read by place in batches of 4 or more"))
    pairs = _pairs(dataset, len(dataset), size // 2)
    if len(pairs) < _FEWEST:
        raise DoesNotApplyError(say("no class of each sample was read"))
    classes = Counter(first for first, _ in pairs)
    site, count = Site(case.name), len(pairs)
    alike = sum(first == second for first, second in pairs) / count
    chance = sum(n * (n - 1) for n in classes.values()) / (count * (count - 1))
    yield Scalar(STEP, "probe.neighbours_alike", alike, site)
    yield Scalar(STEP, "probe.any_two_alike", chance, site)


def _pairs(dataset: Any, samples: int, apart: int) -> list[tuple[int, int]]:
    """The classes of samples that lie so far apart, pair by pair; none of a single batch."""
    last = samples - 1 - apart
    if last < 4 * apart:
        return []
    found: list[tuple[int, int]] = []
    began = time.perf_counter()
    for k in range(_PAIRS):
        place = k * last // (_PAIRS - 1)
        first, second = _class(dataset[place]), _class(dataset[place + apart])
        if first is None or second is None or time.perf_counter() - began > _SECONDS:
            return []
        found.append((first, second))
    return found


def _class(sample: Any) -> int | None:
    """The whole number that a sample ends with."""
    if not isinstance(sample, tuple | list) or len(cast("list[Any]", sample)) < 2:
        return None
    label: Any = cast("list[Any]", sample)[-1]
    if isinstance(label, Tensor):
        whole = label.numel() == 1 and not label.is_floating_point()
        return int(label) if whole and label.dtype is not torch.bool else None
    return label if isinstance(label, int) and not isinstance(label, bool) else None
