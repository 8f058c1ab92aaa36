"""Probe: how large what is random of a sample is, beside what is the same each time it is read.

Legend: M samples, R times each is read, E elements of a sample.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.structures import named_tensors
from traindx.records import Item, Scalar, Site

_SAMPLES, _TIMES = 64, 64
"""M and R, at most."""
_ENOUGH = 16_384
"""R times E that tells the smallest lasting part: of few elements each is read more often."""
_FEWEST = 16
"""M, at least."""
_ELEMENTS = 1024
"""E, evenly spaced, at most."""
_SECONDS = 0.8
"""For reading them."""


class _Parts(NamedTuple):
    """Standard deviations of a sample's elements, in their own unit.

    Attributes:
        random: From time to time.
        lasting: From sample to sample, of what is the same each time.
        sure: How many standard errors the square of that lies from 0.
    """

    random: float
    lasting: float
    sure: float


@probe(
    needs=("loaders",),
    writes=("probe.random_part", "probe.lasting_part"),
    passes=0.0,
    seconds=lambda _case: _SECONDS / 5,
)
def augmentation_noise(case: Case) -> Iterator[Item]:
    """What of the training's samples is random, and what is the same each time they are read."""
    dataset = getattr(case.loaders.training, "dataset", None)
    if dataset is None or isinstance(dataset, IterableDataset):
        raise DoesNotApplyError(say("the data are not read by place"))
    first, second = _input(dataset, 0), _input(dataset, 0)
    if first is None or second is None:
        raise DoesNotApplyError(
            say("the data hold no inputs as tensors of floats, or their targets")
        )
    if torch.equal(first, second):
        raise DoesNotApplyError(say("the data are the same each time they are read"))
    values = _read(dataset)
    if values is None:
        raise DoesNotApplyError(say("too few samples could be read again and again in time"))
    parts = _parts(values)
    site = Site(case.name)
    yield Scalar(STEP, "probe.random_part", parts.random, site)
    yield Scalar(STEP, "probe.lasting_part", parts.lasting, site)
    yield observed("augmentation-noise", site, sure=parts.sure, samples=len(values))


def _input(dataset: Any, place: int) -> Tensor | None:
    """Some elements of a sample's input; None if it is none, or the target is of its kind.

    A target of the input's shape is what it was before noise came, or what is to be made of it.
    """
    sample = dataset[place]
    if not isinstance(sample, tuple | list | dict):
        return None
    found = [t for _, t in named_tensors(cast("Sequence[Any]", sample))]
    x = found[0] if found else None
    if x is None or not x.is_floating_point() or x.numel() < 2:
        return None
    if any(other.shape == x.shape for other in found[1:]):
        return None
    flat = x.detach().cpu().double().flatten()
    return flat[:: max(1, -(-flat.numel() // _ELEMENTS))]


def _read(dataset: Any) -> Tensor | None:
    """(M, R, E); None if there are too few, or they are of several shapes."""
    count = len(dataset)
    began = time.perf_counter()
    some = [_input(dataset, count - 1) for _ in range(4)]
    each = (time.perf_counter() - began) / len(some)
    elements = some[0].numel() if some[0] is not None else 1
    reads = int(_SECONDS / max(each, 1e-9))
    times = max(2, min(_TIMES, _ENOUGH // elements, reads // _SAMPLES))
    samples = min(_SAMPLES, reads // times, count)
    if samples < _FEWEST:
        return None
    places = [k * (count - 1) // (samples - 1) for k in range(samples)]
    rows = [[_input(dataset, place) for _ in range(times)] for place in places]
    flat = [x for row in rows for x in row if x is not None]
    if len(flat) < samples * times or len({x.shape for x in flat}) > 1:
        return None
    values = torch.stack(flat).reshape(samples, times, -1)
    return values if bool(values.isfinite().all()) else None


def _parts(values: Tensor) -> _Parts:
    """Analysis of variance, of each element and then on average."""
    _, times, elements = values.shape
    random = values.var(1).mean(0)  # (E,)
    lasting = values.mean(1).var(0) - random / times
    error = float(lasting.std()) / math.sqrt(elements) if elements > 1 else math.inf
    mean = float(lasting.mean())
    return _Parts(
        random=math.sqrt(float(random.mean())),
        lasting=math.sqrt(max(mean, 0.0)),
        sure=mean / error if error else 0.0,
    )
