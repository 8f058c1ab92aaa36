"""Probe: whether pictures are turned without their masks, and evaluation data at random."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, probe
from traindx.records import Item, Scalar, Site

_TURNS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: x.flip(-1),
    lambda x: x.flip(-2),
    lambda x: x.flip(-1, -2),
    lambda x: x.rot90(1, (-2, -1)),
    lambda x: x.rot90(-1, (-2, -1)),
)
_SAMPLES, _TIMES = 16, 6
_SIDE = 4
_SECONDS = 0.3
"""For reading the samples of one data set."""
_EVALUATION = re.compile(r"val|test|eval|dev|hold|held", re.IGNORECASE)
_ALIKE = 0.9
"""Of the distance between two samples, that between two readings of one: else each is made anew."""

_Sample = tuple[Tensor, Tensor]


@probe(
    needs=("loaders",),
    writes=("probe.turned_alone", "probe.turned_together", "probe.evaluation_random"),
    passes=0.0,
    seconds=lambda _case: _SECONDS / 3,
)
def augmented_samples(case: Case) -> Iterator[Item]:
    """Pictures that are turned without their masks, and evaluation data that differ every time."""
    site = Site(case.name)
    read = _readings(getattr(case.loaders.training, "dataset", None))
    if not read:
        raise DoesNotApplyError(say("the data are not read by place"))
    alone, together = _turned(read)
    yield Scalar(STEP, "probe.turned_alone", alone, site)
    yield Scalar(STEP, "probe.turned_together", together, site)
    for name, loader in case.loaders.others.items():
        if _EVALUATION.search(name):
            others = _readings(getattr(loader, "dataset", None))
            yield Scalar(STEP, "probe.evaluation_random", _random(others), Site(case.name, name))


def _readings(dataset: Any) -> list[list[_Sample]]:
    """Some samples of a data set, each read a few times, as an input and a target."""
    if dataset is None or isinstance(dataset, IterableDataset):
        return []
    count = len(dataset)
    places = [k * (count - 1) // (_SAMPLES - 1) for k in range(_SAMPLES)]
    found: list[list[_Sample]] = []
    began = time.perf_counter()
    for place in dict.fromkeys(places):
        read: list[_Sample] = []
        while len(read) < _TIMES:
            sample = _sample(dataset[place])
            if sample is None or time.perf_counter() - began > _SECONDS:
                return found
            read.append(sample)
        found.append(read)
    return found


def _sample(sample: Any) -> _Sample | None:
    """An input and a target; numbers and arrays are tensors, too."""
    if not isinstance(sample, tuple | list) or len(cast("list[Any]", sample)) != 2:
        return None
    parts = [
        torch.as_tensor(part) if isinstance(part, int | float) or hasattr(part, "__array__") else 0
        for part in cast("list[Any]", sample)
    ]
    found = [part.detach() for part in parts if isinstance(part, Tensor)]
    return (found[0], found[1]) if len(found) == 2 else None


# -- turned ----------------------------------------------------------------------------------------


def _turned(read: list[list[_Sample]]) -> tuple[int, int]:
    """Readings in which one of picture and mask is turned and the other is not, and both are."""
    alone = together = 0
    for readings in read:
        (picture, mask), *others = readings
        if not _are_pictures(picture, mask):
            continue
        for x, y in others:
            for turn in _TURNS:
                one, other = _is_turned(picture, x, turn), _is_turned(mask, y, turn)
                together += one is True and other is True
                alone += {one, other} == {True, False}
    return alone, together


def _are_pictures(picture: Tensor, mask: Tensor) -> bool:
    size = picture.shape[-2:]
    return picture.dim() > 1 and mask.dim() > 1 and size == mask.shape[-2:] and min(size) >= _SIDE


def _is_turned(before: Tensor, after: Tensor, turn: Callable[[Tensor], Tensor]) -> bool | None:
    """None if it cannot be told: it is neither, or the same either way."""
    turned = turn(before)
    if turned.shape != before.shape or after.shape != before.shape or torch.equal(turned, before):
        return None
    if torch.equal(after, turned):
        return True
    return False if torch.equal(after, before) else None


# -- at random -------------------------------------------------------------------------------------


def _random(read: list[list[_Sample]]) -> float:
    """Fraction of the samples whose input differs from reading to reading; their target does not.

    Inputs that are as far from each other as those of other samples are made anew each time.
    """
    inputs = [[x for x, _ in readings] for readings in read]
    flat = [x for row in inputs for x in row]
    if len(read) < 2 or len({x.shape for x in flat}) > 1 or not flat[0].is_floating_point():
        return 0.0
    if any(x.shape == y.shape for x, y in read[0]):  # what it was before noise came
        return 0.0
    if any(not torch.equal(y, readings[0][1]) for readings in read for _, y in readings):
        return 0.0
    again = [float((row[0] - row[1]).square().sum().sqrt()) for row in inputs]
    others = [float((a[0] - b[0]).square().sum().sqrt()) for a, b in pairwise(inputs)]
    if not sum(others) or sum(again) / len(again) > _ALIKE * sum(others) / len(others):
        return 0.0
    return sum(distance > 0 for distance in again) / len(again)
