"""Probe: whether a loader that does not shuffle reads samples that lie sorted by class."""

from __future__ import annotations

import time
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.data import IterableDataset, SequentialSampler

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.pairs import pairs_in_order
from traindx.preflight.probe import STEP, probe
from traindx.records import Item, Scalar, Site

_PAIRS = 64
"""Pairs of samples that are looked at, evenly spaced over the data."""
_FEWEST = 16
_SECONDS = 0.5
"""For reading them."""


@probe(
    needs=("batch",),
    writes=("probe.neighbours_alike", "probe.any_two_alike"),
    passes=0.0,
    seconds=lambda _case: _SECONDS / 5,
)
def data_order(case: Case) -> Iterator[Item]:
    """How often samples half a batch apart are of one class, beside any two samples."""
    pairs = _read(case.loaders.training) if case.loaders.training is not None else _held(case)
    if not all(first.is_integer() and second.is_integer() for first, second in pairs):
        pairs = _quarters(pairs)
    if len(pairs) < _FEWEST:
        raise DoesNotApplyError(say("no class of each sample was read"))
    classes = Counter(first for first, _ in pairs)
    site, count = Site(case.name), len(pairs)
    alike = sum(first == second for first, second in pairs) / count
    chance = sum(n * (n - 1) for n in classes.values()) / (count * (count - 1))
    yield Scalar(STEP, "probe.neighbours_alike", alike, site)
    yield Scalar(STEP, "probe.any_two_alike", chance, site)


def _read(loader: Any) -> list[tuple[float, float]]:
    """Labels of pairs of samples of the loader's data set."""
    size, dataset = getattr(loader, "batch_size", None), getattr(loader, "dataset", None)
    if type(getattr(loader, "sampler", None)) is not SequentialSampler:
        raise DoesNotApplyError(say("the training loader draws its samples in an order of its own"))
    if dataset is None or isinstance(dataset, IterableDataset) or not size or size < 4:
        raise DoesNotApplyError(say("the data are not read by place in batches of 4 or more"))
    return _pairs(lambda place: _label(dataset[place]), len(dataset), size // 2)


def _held(case: Case) -> list[tuple[float, float]]:
    """The same of the program's own tensors, if the batch is the next rows of them."""
    size, held = case.batch_size, pairs_in_order(case)
    if held is None or not size or size < 4:
        raise DoesNotApplyError(say("the data are not read by place in batches of 4 or more"))
    if held.labels.shape[1] > 1:
        return []
    labels = cast("list[float]", cast(Any, held.labels[:, 0]).tolist())
    return _pairs(labels.__getitem__, len(labels), size // 2)


def _pairs(
    label: Callable[[int], float | None], samples: int, apart: int
) -> list[tuple[float, float]]:
    """The labels of samples that lie so far apart, pair by pair; none of a single batch."""
    last = samples - 1 - apart
    if last < 4 * apart:
        return []
    found: list[tuple[float, float]] = []
    began = time.perf_counter()
    for k in range(_PAIRS):
        place = k * last // (_PAIRS - 1)
        first, second = label(place), label(place + apart)
        if first is None or second is None or time.perf_counter() - began > _SECONDS:
            return []
        found.append((first, second))
    return found


def _quarters(pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Numbers as the quarter of all that they lie in, if they only rise or only fall; else none.

    A series drifts, too, so that its neighbours are alike, but goes up and down.
    """
    first = [one for one, _ in pairs]
    if first not in (sorted(first), sorted(first, reverse=True)):
        return []
    order = sorted(first)
    borders = [order[len(order) * k // 4] for k in (1, 2, 3)]
    return [(float(bisect(borders, a)), float(bisect(borders, b))) for a, b in pairs]


def _label(sample: Any) -> float | None:
    """The number that a sample ends with; no flag, which is no class of the data's order."""
    if not isinstance(sample, tuple | list) or len(cast("list[Any]", sample)) < 2:
        return None
    label: Any = cast("list[Any]", sample)[-1]
    if isinstance(label, Tensor):
        plain = label.numel() == 1 and label.dtype is not torch.bool and not label.is_complex()
        return float(label) if plain else None
    return float(label) if isinstance(label, int | float) and not isinstance(label, bool) else None
