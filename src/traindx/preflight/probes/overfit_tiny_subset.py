"""Probe: whether a few samples can be learned by heart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import seeded
from traindx.preflight.probe import STEP, Steps, observed, probe
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
_TYPICAL = 120
"""Steps that half of the programs take (of the zoo's calibration half; nine of ten 14 to 510)."""


def _ready(case: Case) -> Callable[[], object]:
    """What takes one step of such a training."""
    few = _few(case)
    params = [param for _, param in few.trainable()]
    optimizer = Adam(params, lr=_RATES[0])
    return lambda: _step(few, params, optimizer)


@probe(
    needs=("comparison", "batch"),
    writes=("probe.overfit_fraction", "probe.overfit_steps"),
    trains=True,
    few=2.0,
    steps=Steps(_ready, 1, _TYPICAL, len(_RATES) * _STEPS + _MORE),
)
def overfit_tiny_subset(case: Case) -> Iterator[Item]:
    """Train on a few samples, without regularization, until they are known by heart."""
    few = _few(case)
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


def _few(case: Case) -> Case:
    """Some samples of the batch, evenly spaced: neighbours may be all alike; without dropout."""
    size, samples = case.batch_size or 0, _samples(case)
    few = case if samples >= size else case.take(torch.arange(samples) * size // samples)
    without_dropout(few.model)
    return few


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
        value = _step(case, params, optimizer)
        if not math.isfinite(value):
            return least, step
        least = min(least, value)
        if least <= _ENOUGH * guess:
            return least, step
    return least, most


def _step(case: Case, params: Sequence[Tensor], optimizer: Adam) -> float:
    """Take a step; the loss before it."""
    seeded(0)  # what a model draws is drawn alike, so that it can be learned by heart
    loss = data_loss(case)
    if not loss.requires_grad:
        raise DoesNotApplyError(say("no gradient reaches the parameters"))
    optimizer.step(torch.autograd.grad(loss, [*params], allow_unused=True))
    return float(loss.detach())
