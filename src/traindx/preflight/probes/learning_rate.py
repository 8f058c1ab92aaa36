"""Probe: which learning rates lower the loss, by short runs from the same start on one batch."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch.optim.optimizer import Optimizer

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import seeded, without_graph
from traindx.preflight.probe import STEP, observed, probe
from traindx.records import Item, Scalar, Site

_DECADES = range(-3, 5)
"""The rates tried, in decades around the optimizer's own."""
_STEPS = 4
"""Steps of each run."""
_SOME, _MUCH = 0.1, 0.5
"""Of the best run's progress, that of the least and of the greatest rate worth trying."""
_NO_PROGRESS = 1e-3
"""Of the first loss, what it must fall by in the best run."""
_UNSET = 1e-3
"""The rate around which to look where the optimizer's own is 0."""


@probe(
    needs=("loss", "optimizer"),
    writes=("probe.lr", "probe.lr_low", "probe.lr_high"),
    trains=True,
    passes=len(_DECADES) * (_STEPS + 0.5) * 1.1,
)
def learning_rate(case: Case) -> Iterator[Item]:
    """Which learning rates lower the loss, by short runs from the same start on one batch."""
    optimizer = case.optimizer
    assert optimizer is not None, "it is needed"
    own = _rates(optimizer)
    start = _Start(case, optimizer)
    runs: list[_Run] = []
    for decade in _DECADES:
        start.again()
        runs.append(_tried(case, optimizer, own, 10.0**decade))
    first, progress = runs[0].first, max(run.progress for run in runs)
    if not math.isfinite(first):
        raise DoesNotApplyError(say("the loss is not finite"))
    if progress <= _NO_PROGRESS * abs(first):
        raise DoesNotApplyError(say("no learning rate lowers the loss of one batch"))
    low = min(run.rate for run in runs if run.progress >= _SOME * progress)
    calm = [run.rate for run in runs if run.progress >= _MUCH * progress and not run.rises]
    high = max([low, *calm])
    site = Site(case.name)
    yield Scalar(STEP, "probe.lr", own[0], site)
    yield Scalar(STEP, "probe.lr_low", low, site)
    yield Scalar(STEP, "probe.lr_high", high, site)
    yield observed(
        "learning-rate",
        site,
        optimizer=type(optimizer).__name__,
        steps=_STEPS,
        first=first,
        rates=[run.rate for run in runs],
        losses=[run.last if math.isfinite(run.last) else None for run in runs],
        bounded=high < runs[-1].rate,
        set=bool(optimizer.param_groups[0]["lr"]),
    )


class _Start:
    """Weights, buffers and the optimizer's state, to begin from them again."""

    def __init__(self, case: Case, optimizer: Optimizer) -> None:
        tensors = [*case.model.parameters(), *case.model.buffers()]
        self._tensors = [(tensor.detach(), tensor.detach().clone()) for tensor in tensors]
        self._optimizer = optimizer
        self._state = copy.deepcopy([*optimizer.state.values()])
        self._keys = [*optimizer.state]

    def again(self) -> None:
        """Put them back."""
        for tensor, value in self._tensors:
            tensor.copy_(value)
        self._optimizer.state.clear()
        self._optimizer.state.update(zip(self._keys, copy.deepcopy(self._state), strict=True))


class _Run(NamedTuple):
    """A short run.

    Attributes:
        rate: Of the optimizer's first group.
        first: The loss before it.
        last: The loss after it.
        rises: Whether the loss was ever more than before by more than a tenth.
    """

    rate: float
    first: float
    last: float
    rises: bool

    @property
    def progress(self) -> float:
        return self.first - self.last if math.isfinite(self.last) else -math.inf


def _rates(optimizer: Optimizer) -> list[float]:
    """The rate of each group: of a schedule, the one that it starts from."""
    groups = optimizer.param_groups
    if any("lr" not in group for group in groups):
        raise DoesNotApplyError(say("the optimizer has no learning rate"))
    rates = [float(group.get("initial_lr", group["lr"])) for group in groups]
    return rates if rates[0] else [_UNSET for _ in rates]


def _tried(case: Case, optimizer: Optimizer, own: list[float], times: float) -> _Run:
    for group, rate in zip(optimizer.param_groups, own, strict=True):
        group["lr"] = rate * times
    losses: list[float] = []
    for _ in range(_STEPS):
        losses.append(_stepped(case, optimizer))
        if not math.isfinite(losses[-1]):
            break
    seeded(0)
    losses.append(float(without_graph(case.loss).detach()))
    rises = any(not loss <= losses[0] + 0.1 * abs(losses[0]) for loss in losses)
    return _Run(own[0] * times, losses[0], losses[-1], rises)


def _stepped(case: Case, optimizer: Optimizer) -> float:
    """One step, with the same random numbers each time: so the loss is one function."""
    seeded(0)
    optimizer.zero_grad(set_to_none=True)
    for param in case.model.parameters():
        param.grad = None
    loss = case.loss()
    torch.autograd.backward(loss)
    try:
        optimizer.step()
    except TypeError as error:  # LBFGS asks for a closure
        raise DoesNotApplyError(say("the optimizer steps only with a closure")) from error
    return float(loss.detach())
