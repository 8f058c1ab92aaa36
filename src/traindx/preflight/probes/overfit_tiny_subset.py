"""Probe: whether a few samples can be learned by heart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import seeded
from traindx.preflight.probe import FEW, STEP, observed, probe
from traindx.preflight.unregularized import Adam, data_loss, of_a_guess, without_dropout
from traindx.records import Item, Scalar, Site

_SAMPLES = 20
_SEQUENCES = 4
"""Samples where each has many targets: the first steps of several sequences contradict."""
_RATES = (3e-3, 3e-4, 3e-2)
_STEPS = 150
"""Steps that each rate gets at most."""
_MORE, _HALF = 600, 0.5
"""Steps that the best rate gets once more where it has come so far, and not far enough."""
_ENOUGH = 0.02
"""Fraction of the loss of a guess at which nothing more is to be shown."""
_FINE = 0.05
"""The same at which no other rate is tried: the first steps of sequences may contradict."""
_TYPICAL = 80
"""Steps that a model takes which can be trained."""
_STEP, _ELEMENT = 4e-5, 5e-9
"""Seconds of a step for each parameter, and for each of its elements."""


def _whole(case: Case) -> float:
    """Passes of the batch that its samples cost: between those of a few and of all."""
    size, samples = case.batch_size or 1, _samples(case)
    if size <= FEW:
        return float(_TYPICAL)
    return _TYPICAL * (min(samples, size) - FEW) / (size - FEW)


def _few(case: Case) -> float:
    return _TYPICAL - _whole(case)


def _steps(case: Case) -> float:
    """Seconds of the optimizer."""
    params = [param for _, param in case.trainable()]
    return _TYPICAL * (_STEP * len(params) + _ELEMENT * sum(p.numel() for p in params))


@probe(
    needs=("comparison", "batch"),
    writes=("probe.overfit_fraction", "probe.overfit_steps"),
    trains=True,
    passes=_whole,
    few=_few,
    seconds=_steps,
)
def overfit_tiny_subset(case: Case) -> Iterator[Item]:
    """Train on a few samples, without regularization, until they are known by heart."""
    few = _spread(case, _samples(case))
    without_dropout(few.model)
    guess = of_a_guess(few)
    if not guess > 0:
        raise DoesNotApplyError(say("the few samples have all the same target"))
    params = [param for _, param in few.trainable()]
    if not params:
        raise DoesNotApplyError(say("no parameter takes gradients"))
    begun = [param.detach().clone() for param in params]
    best, steps, fastest = math.inf, 0, _RATES[0]
    for rate, most in [*((rate, _STEPS) for rate in _RATES), (0.0, _MORE)]:
        if not rate and best > _HALF:
            break  # what is far off will not get there
        with torch.no_grad():
            for param, before in zip(params, begun, strict=True):
                param.copy_(before)
        least, taken = _trained(few, params, rate or fastest, guess, most)
        if least / guess < best:
            best, fastest = least / guess, rate or fastest
        steps += taken
        if best <= _FINE:
            break
    site = Site(case.name)
    yield Scalar(STEP, "probe.overfit_fraction", best, site)
    yield Scalar(STEP, "probe.overfit_steps", steps, site)
    yield observed("overfit-tiny-subset", site, samples=few.batch_size, guess=guess)


def _spread(case: Case, samples: int) -> Case:
    """Some samples of the batch, evenly spaced: neighbours may be all alike."""
    size = case.batch_size or 0
    return case if samples >= size else case.take(torch.arange(samples) * size // samples)


def _samples(case: Case) -> int:
    size = case.batch_size or 0
    targets = [t for t in case.targets if t.dim() and not t.is_floating_point()]
    return _SEQUENCES if any(t.numel() >= 4 * size for t in targets) else _SAMPLES


def _trained(
    case: Case, params: Sequence[Tensor], rate: float, guess: float, most: int
) -> tuple[float, int]:
    """The least loss on the way, and the steps taken; infinite if it was never finite."""
    optimizer = Adam(params, lr=rate)
    least = math.inf
    for step in range(most):
        seeded(0)  # what a model draws is drawn alike, so that it can be learned by heart
        loss = data_loss(case)
        if not loss.requires_grad:
            raise DoesNotApplyError(say("no gradient reaches the parameters"))
        value = float(loss.detach())
        if not math.isfinite(value):
            return least, step
        least = min(least, value)
        if least <= _ENOUGH * guess:
            return least, step
        optimizer.step(torch.autograd.grad(loss, [*params], allow_unused=True))
    return least, most
