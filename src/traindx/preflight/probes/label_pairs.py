"""Probe: whether the labels go with their own inputs, with those of another row, or with none.

Two cheap learners predict each row's label from the other rows: the nearest neighbours' labels, and
ridge regression with each row left out. How well the predictions agree with the labels is compared
with labels in random order.

Legend: n rows, D features after projection, K columns of coded labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.pairs import Pairs, pairs_of
from traindx.preflight.probe import STEP, observed, probe
from traindx.records import Item, Scalar, Site

_FEWEST = 256
"""Rows."""
_DIMENSIONS = 48
"""D, of more features a random projection of them."""
_CLASSES = 32
"""K, at most."""
_BINS = 8
"""Groups of equal size into which a number is put, so that its spread counts, too."""
_NEIGHBOURS = 10
_ORDERS = 40
"""Random orders of the labels."""
_SHIFTS = (-3, -2, -1, 1, 2, 3)
_RIDGE = 1e-3


class _Agreement(NamedTuple):
    """How far predictions agree with labels, in standard deviations of those in random order."""

    neighbours: float
    ridge: float

    @property
    def least(self) -> float:
        return min(self)

    @property
    def most(self) -> float:
        return max(self)

    @property
    def strongest(self) -> float:
        """In size, since labels may also differ from their neighbours' on purpose."""
        return max(map(abs, self))


@probe(
    needs=("loss", "batch"),
    writes=("probe.label_agreement", "probe.label_agreement_shifted"),
    passes=0.0,
    seconds=lambda _case: 0.25,
)
def label_pairs(case: Case) -> Iterator[Item]:
    """How far labels follow from their inputs, beside labels of rows before and after."""
    pairs = pairs_of(case)
    if pairs is None or len(pairs.inputs) < _FEWEST:
        raise DoesNotApplyError(say("the data and their labels were not found, row by row"))
    z, y = _features(pairs.inputs), _coded(pairs)
    if z is None or y is None:
        raise DoesNotApplyError(say("the labels are all alike, or of too many classes"))
    apart = torch.cdist(z, z)
    learners = _neighbours(apart), _ridge(z)
    spread = [_chance(learner, y) for learner in learners]

    def agreement(labels: Tensor) -> _Agreement:
        pairs = zip(learners, spread, strict=True)
        return _Agreement(*((_of(learner, labels) - m) / s for learner, (m, s) in pairs))

    own = agreement(y)
    others = {shift: agreement(y.roll(-shift, 0)) for shift in _SHIFTS}
    shift = max(others, key=lambda one: others[one].most)
    site = Site(case.name)
    yield Scalar(STEP, "probe.label_agreement", own.strongest, site)
    yield Scalar(STEP, "probe.label_agreement_shifted", others[shift].most, site)
    yield observed(
        "label-pairs",
        site,
        shift=shift,
        second=max(one.strongest for key, one in others.items() if key != shift),
        follows=_follows(z),
        near=_near(apart) / _near_alone(pairs.inputs),
        rows=len(z),
    )


# -- rows ------------------------------------------------------------------------------------------


def _features(inputs: Tensor) -> Tensor | None:
    """(n, D), standardized; None if nothing varies."""
    varied = inputs[:, (inputs != inputs[:1]).any(0)]
    if not varied.shape[1]:
        return None
    z = (varied - varied.mean(0)) / varied.std(0)
    if z.shape[1] > _DIMENSIONS:
        generator = torch.Generator().manual_seed(0)
        z = z @ torch.randn(z.shape[1], _DIMENSIONS, generator=generator, dtype=z.dtype)
        z = (z - z.mean(0)) / z.std(0)
    return z


def _coded(pairs: Pairs) -> Tensor | None:
    """(n, K): a column for each class, or each group of numbers; centred. None if alike."""
    columns = [_groups(column, pairs.classes) for column in pairs.labels.unbind(1)]
    known = [column for column in columns if column is not None]
    if len(known) < len(columns):
        return None
    y = torch.cat(known, 1)
    return y - y.mean(0)


def _groups(column: Tensor, classes: bool) -> Tensor | None:
    values, place = cast(
        "tuple[Tensor, Tensor]", cast(Any, torch).unique(column, return_inverse=True)
    )
    if len(values) < 2 or (classes and len(values) > _CLASSES):
        return None
    if len(values) > _CLASSES:
        place = column.argsort().argsort() * _BINS // len(column)
    return F.one_hot(place).double()


# -- learners --------------------------------------------------------------------------------------

_Learner = Callable[[Tensor], Tensor]
"""Predicts each row's label, of shape (n, K), from those of the others."""


def _neighbours(apart: Tensor) -> _Learner:
    others = apart.clone().fill_diagonal_(torch.inf)
    nearest = others.topk(_NEIGHBOURS, largest=False).indices

    def predicted(y: Tensor) -> Tensor:
        return y[nearest].mean(1)

    return predicted


def _ridge(z: Tensor) -> _Learner:
    ones = torch.ones(len(z), 1, dtype=z.dtype)
    a = torch.cat([ones, z], 1)
    gram = a.T @ a + _RIDGE * len(z) * torch.eye(a.shape[1], dtype=z.dtype)
    weights = cast(Tensor, cast(Any, torch.linalg).solve(gram, a.T))  # (D + 1, n)
    leverage = (a * weights.T).sum(1, keepdim=True)

    def predicted(y: Tensor) -> Tensor:
        return y - (y - a @ (weights @ y)) / (1 - leverage)  # what is left out of a row's own fit

    return predicted


def _of(learner: _Learner, y: Tensor) -> float:
    """Mean product of predictions and labels."""
    return float((learner(y) * y).sum(1).mean())


def _chance(learner: _Learner, y: Tensor) -> tuple[float, float]:
    """Mean and standard deviation of that for labels in random order."""
    generator = torch.Generator().manual_seed(0)
    orders = (torch.randperm(len(y), generator=generator) for _ in range(_ORDERS))
    found = torch.tensor([_of(learner, y[order]) for order in orders], dtype=torch.float64)
    return float(found.mean()), max(float(found.std()), 1e-12)


# -- what rows are ---------------------------------------------------------------------------------


def _follows(z: Tensor) -> float:
    """How far a row follows from the one before: greatest correlation, in deviations of chance."""
    n = len(z) - 1
    return float((z[:-1].T @ z[1:] / n).abs().max()) * n**0.5


def _near_alone(inputs: Tensor) -> float:
    """How near rows of the same features would lie if these had nothing to do with each other."""
    generator = torch.Generator().manual_seed(0)
    orders = torch.rand(inputs.shape, generator=generator).argsort(0)
    z = _features(inputs.gather(0, orders))
    return 1.0 if z is None else max(_near(torch.cdist(z, z)), 1e-12)


def _near(apart: Tensor) -> float:
    """Median distance to the nearest row, over that of any two."""
    usual = float(apart.median())
    nearest = apart.clone().fill_diagonal_(torch.inf).min(1).values.median()
    return float(nearest) / usual if usual else 1.0
