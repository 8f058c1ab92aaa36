"""Probe: whether a few samples can be learned by heart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.probe import STEP, observed, probe
from traindx.preflight.unregularized import Adam, data_loss, of_a_guess, without_dropout
from traindx.records import Item, Scalar, Site

_SAMPLES = 20
_SEQUENCES = 4
"""Samples where each has many targets: the first steps of several sequences contradict."""
_RATES = (3e-3, 3e-4, 3e-2)
_STEPS = 150
"""Steps that each rate gets at most."""
_ENOUGH = 0.02
"""Fraction of the loss of a guess at which nothing more is to be shown."""
_FINE = 0.05
"""The same at which no other rate is tried: the first steps of sequences may contradict."""
_TYPICAL = 80
"""Steps that a model takes which can be trained."""


@probe(
    needs=("comparison", "batch"),
    writes=("probe.overfit_fraction", "probe.overfit_steps"),
    trains=True,
    passes=0.0,
    few=1.5 * _TYPICAL,
)
def overfit_tiny_subset(case: Case) -> Iterator[Item]:
    """Train on a few samples, without regularization, until they are known by heart."""
    few = case.subset(_samples(case))
    without_dropout(few.model)
    guess = of_a_guess(few)
    if not guess > 0:
        raise DoesNotApplyError(say("the few samples have all the same target"))
    params = [param for _, param in few.trainable()]
    if not params:
        raise DoesNotApplyError(say("no parameter takes gradients"))
    begun = [param.detach().clone() for param in params]
    best, steps = math.inf, 0
    for rate in _RATES:
        with torch.no_grad():
            for param, before in zip(params, begun, strict=True):
                param.copy_(before)
        least, taken = _trained(few, params, rate, guess)
        best, steps = min(best, least / guess), steps + taken
        if best <= _FINE:
            break
    site = Site(case.name)
    yield Scalar(STEP, "probe.overfit_fraction", best, site)
    yield Scalar(STEP, "probe.overfit_steps", steps, site)
    yield observed("overfit-tiny-subset", site, samples=few.batch_size, guess=guess)


def _samples(case: Case) -> int:
    size = case.batch_size or 0
    targets = [t for t in case.targets if t.dim() and not t.is_floating_point()]
    return _SEQUENCES if any(t.numel() >= 4 * size for t in targets) else _SAMPLES


def _trained(case: Case, params: Sequence[Tensor], rate: float, guess: float) -> tuple[float, int]:
    """The least loss on the way, and the steps taken; infinite if it was never finite."""
    optimizer = Adam(params, lr=rate)
    least = math.inf
    for step in range(_STEPS):
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
    return least, _STEPS
