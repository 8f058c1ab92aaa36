"""Probe: whether the other terms of a loss keep one of them from being learned.

A model is trained on a few samples twice, on the whole loss and on one term alone. What the term
comes to is measured beside the best answer that does not look at the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.case import Case, Compared, DoesNotApplyError
from traindx.preflight.comparing import seeded
from traindx.preflight.probe import STEP, Steps, observed, probe
from traindx.preflight.terms import Term, terms_of
from traindx.preflight.unregularized import (
    LEAST_KNOWN,
    Adam,
    excess_of,
    guess_of,
    without_dropout,
)
from traindx.records import Item, Scalar, Site

_SAMPLES = 24
_RATES = (3e-3, 3e-4)
_STEPS = 200
_TYPICAL = 30
"""Steps that sums take in which each term is learned."""
_MEAN = 10
"""Steps over which a term is averaged, since models draw."""
_LEARNED, _ALONE = 0.7, 0.4
"""Of the loss of a guess: where a term is learned well enough to ask no more, of all and alone."""


@dataclass(frozen=True, slots=True)
class _Course:
    """What became of each term: the least mean on the way, over that of a guess.

    Attributes:
        left: Of each term.
        bounded: Of each term, whether the others together were never negative.
    """

    left: list[float]
    bounded: list[bool]


def _ready(case: Case) -> Callable[[], object]:
    """What takes one step of such a training; nothing of a loss that is not judged."""
    few = _few(case)
    if not _judged(terms_of(few, few.output())[1]):
        return lambda: None
    params = [param for _, param in few.trainable()]
    optimizer = Adam(params, lr=_RATES[0])

    def step() -> None:
        loss, _ = terms_of(few, few.output())
        optimizer.step(torch.autograd.grad(loss, [*params], allow_unused=True))

    return step


@probe(
    needs=("comparison", "batch"),
    writes=("probe.term_left", "probe.term_alone"),
    trains=True,
    passes=1.0,
    steps=Steps(_ready, 1, _TYPICAL, 2 * len(_RATES) * _STEPS),
)
def loss_terms(case: Case) -> Iterator[Item]:
    """What is left of each term of the loss after a short training on all, and on it alone."""
    few = _few(case)
    _, terms = terms_of(few, few.output())
    judged = _judged(terms)
    if not judged:
        raise DoesNotApplyError(say("the loss is no sum with a term whose least value is known"))
    params = [param for _, param in few.trainable()]
    begun = [param.detach().clone() for param in params]
    together = _best(few, params, begun, judged)
    left, bounded = dict(zip(judged, together.left, strict=True)), together.bounded
    worst = max(judged, key=lambda i: left[i])
    if not bounded[judged.index(worst)]:
        raise DoesNotApplyError(say("the other terms of the loss may fall without end"))
    site = Site(case.name)
    yield Scalar(STEP, "probe.term_left", left[worst], site)
    if left[worst] <= _LEARNED:
        return
    alone = _best(few, params, begun, [worst], worst).left[0]
    yield Scalar(STEP, "probe.term_alone", alone, site)
    _put_back(params, begun)
    compared = terms[worst].compared
    assert compared is not None
    yield observed(
        "loss-terms",
        site,
        term=worst + 1,
        terms=len(terms),
        function=compared.function,
        reduction=str(compared.options.get("reduction", "mean")),
        weight=terms[worst].weight,
        share=_share(few, params, worst),
    )


def _few(case: Case) -> Case:
    size = case.batch_size or 0
    some = torch.arange(_SAMPLES) * size // _SAMPLES
    few = case if size <= _SAMPLES else case.take(some)
    without_dropout(few.model)
    return few


def _judged(terms: Sequence[Term]) -> list[int]:
    """The places of the terms that are judged."""
    several = len(terms) > 1
    return [i for i, term in enumerate(terms) if several and _is_judged(term, terms)]


def _is_judged(term: Term, terms: Sequence[Term]) -> bool:
    """Whether a term's least value and that of a guess are known, and no other compares the same.

    Two targets of one prediction, as of mixed samples, contradict each other on purpose.
    """
    if not _is_known(term) or term.weight <= 0:
        return False
    own = cast(Any, term.compared)
    others = [one.compared for one in terms if one is not term and one.compared is not None]
    apart = all(one.prediction is not own.prediction for one in others)
    return apart and _blind(own) > 0


def _is_known(term: Term) -> bool:
    return term.compared is not None and term.compared.function in LEAST_KNOWN


def _blind(compared: Compared) -> float:
    """The loss of the best answer that does not look at the input, as often as targets occur.

    `guess_of` takes an even one of classes, which any bias of a last layer is better than.
    """
    target = compared.target.detach()
    if compared.function.endswith("l1_loss") or not target.dim():
        return guess_of(compared)
    if compared.function.startswith("binary"):
        values = target.double()
        return _binary_entropy(values.mean(0)) - _binary_entropy(values)
    if compared.function in ("cross_entropy", "nll_loss"):
        if target.is_floating_point():
            values = target.double()
            return _entropy(values.mean(0)) - float(-torch.xlogy(values, values).sum(1).mean())
        counted = target[(target >= 0) & (target != compared.options.get("ignore_index", -100))]
        counts = torch.bincount(counted.flatten()).double()
        return _entropy(counts / counts.sum().clamp_min(1))
    return guess_of(compared)


def _entropy(shares: Tensor) -> float:
    """In nats, along the first axis."""
    return float(-torch.xlogy(shares, shares).sum(0).mean())


def _binary_entropy(shares: Tensor) -> float:
    return float(-(torch.xlogy(shares, shares) + torch.xlogy(1 - shares, 1 - shares)).mean())


def _put_back(params: Sequence[Tensor], begun: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for param, before in zip(params, begun, strict=True):
            param.copy_(before)


def _best(
    case: Case,
    params: Sequence[Tensor],
    begun: Sequence[Tensor],
    judged: Sequence[int],
    only: int | None = None,
) -> _Course:
    """The course at the rate that brings the terms furthest, of which more are tried if need be."""
    best: _Course | None = None
    enough = _LEARNED if only is None else _ALONE
    for rate in _RATES:
        _put_back(params, begun)
        course = _trained(case, params, judged, only, rate, enough)
        if best is None or max(course.left) < max(best.left):
            best = course
        if max(best.left) <= enough:
            break
    assert best is not None
    return best


def _trained(
    case: Case,
    params: Sequence[Tensor],
    judged: Sequence[int],
    only: int | None,
    rate: float,
    enough: float,
) -> _Course:
    optimizer = Adam(params, lr=rate)
    past: list[list[float]] = [[] for _ in judged]
    least, bounded = [math.inf] * len(judged), [True] * len(judged)
    for step in range(_STEPS):
        seeded(step)  # what a model draws is drawn anew: it must not be learned by heart
        loss, terms = terms_of(case, case.output())
        total = loss if only is None else terms[only].value
        if not total.requires_grad or not bool(total.isfinite()):
            break
        for place, index in enumerate(judged):
            compared = terms[index].compared
            if compared is None:
                raise DoesNotApplyError(say("the terms of the loss change from step to step"))
            past[place].append(float(excess_of(compared).detach()) / _blind(compared))
            mean = sum(past[place][-_MEAN:]) / _MEAN if len(past[place]) >= _MEAN else math.inf
            least[place] = min(least[place], mean)
            rest = float((loss - terms[index].weight * terms[index].value).detach())
            bounded[place] &= rest >= -1e-6 * abs(float(loss.detach()))
        if max(least) <= enough:
            break
        optimizer.step(torch.autograd.grad(total, [*params], allow_unused=True))
    return _Course(least, bounded)


def _share(case: Case, params: Sequence[Tensor], index: int) -> float:
    """The part of a term in the length of the gradients, of it and of the others."""
    seeded(0)
    loss, terms = terms_of(case, case.output())
    own = terms[index].weight * terms[index].value
    lengths = [_length(part, params) for part in (own, loss - own)]
    return lengths[0] / max(sum(lengths), torch.finfo(torch.float32).tiny)


def _length(value: Tensor, params: Sequence[Tensor]) -> float:
    grads = torch.autograd.grad(value, [*params], allow_unused=True, retain_graph=True)
    found = cast("Sequence[Tensor | None]", grads)
    return math.sqrt(sum(float(g.double().square().sum()) for g in found if g is not None))
