"""Probe: whether the loss of a batch is the mean of those of its halves, or their sum."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor

from traindx.messages import say
from traindx.preflight.case import Case, DoesNotApplyError
from traindx.preflight.comparing import loss_again
from traindx.preflight.probe import STEP, probe
from traindx.records import Item, Scalar, Site

_EXACT = 1e-3
"""Of a loss: how far it may be from the sum of its halves' by rounding."""


@probe(
    needs=("loss", "batch", "optimizer"),
    writes=("probe.loss_slope", "probe.first_step"),
    passes=1.7,
)
def batch_scale(case: Case) -> Iterator[Item]:
    """How the loss grows with the batch, and how far its gradient moves the weights in a step."""
    size = (case.batch_size or 0) // 2 * 2
    if size < 4:
        raise DoesNotApplyError(say("the batch has fewer than 4 samples"))
    case.model.eval()
    rows = torch.arange(size)
    whole, first, last = (loss_again(case.take(some)) for some in (rows, *rows.chunk(2)))
    if not all(map(math.isfinite, (whole, first, last))) or not whole:
        raise DoesNotApplyError(say("the loss is 0, or not finite"))
    half = (first + last) / 2
    near = min((half, 2 * half), key=lambda value: abs(whole - value))
    if abs(whole - near) > _EXACT * abs(whole) or not half:
        raise DoesNotApplyError(say("the loss is neither the mean nor the sum over its samples"))
    yield Scalar(STEP, "probe.loss_slope", math.log2(whole / half), Site(case.name))
    if type(case.optimizer) is torch.optim.SGD:
        yield Scalar(STEP, "probe.first_step", _step(case), Site(case.name))


def _step(case: Case) -> float:
    """The norm of the first step of plain gradient descent, over that of the weights it moves."""
    assert case.optimizer is not None
    groups = [
        (float(group["lr"]), [p for p in cast("list[Any]", group["params"]) if p.requires_grad])
        for group in case.optimizer.param_groups
    ]
    params = [param for _, own in groups for param in own]
    rates = [rate for rate, own in groups for _ in own]
    grads = cast("Any", torch.autograd.grad)(case.loss(), params, allow_unused=True)
    pairs = zip(rates, cast("tuple[Tensor | None, ...]", grads), strict=True)
    moved = math.hypot(*(rate * _norm(grad) for rate, grad in pairs if grad is not None))
    return moved / max(math.hypot(*map(_norm, params)), torch.finfo(torch.float32).tiny)


def _norm(tensor: Tensor) -> float:
    return float(tensor.detach().double().square().sum().sqrt())
