"""With which sign a loss counts what it is made of: losses that torch knows, and likelihoods.

The graph is walked from the scalar down as long as every operation is linear in what it passes on,
so that the factor in front of each part is known. Nothing of the graph is kept.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from traindx.capture.nodes import name_of, saved
from traindx.capture.owners import variables_in_frames

_LIMIT = 4096
"""Operations looked at."""
_FEWEST = 4
"""Rewards that it takes to tell whether a factor rises with them."""
_KEEPS = {
    "AliasBackward0", "CatBackward0", "CloneBackward0", "ExpandBackward0", "MeanBackward0",
    "MeanBackward1", "PermuteBackward0", "ReshapeAliasBackward0", "SqueezeBackward0",
    "SqueezeBackward1", "SqueezeBackward2", "StackBackward0", "SumBackward0", "SumBackward1",
    "ToCopyBackward0", "TransposeBackward0", "UnsafeViewBackward0", "UnsqueezeBackward0",
    "ViewBackward0",
}  # fmt: skip
"""Operations that pass on what they are given with a positive factor, the same for each element."""
_LOSSES = {
    "NllLossBackward0", "NllLoss2DBackward0", "MseLossBackward0", "SmoothL1LossBackward0",
    "HuberLossBackward0", "BinaryCrossEntropyBackward0", "BinaryCrossEntropyWithLogitsBackward0",
}  # fmt: skip
"""Losses that are no less than 0 and have no upper bound."""
_LIKELIHOODS = {"NllLossBackward0", "BinaryCrossEntropyWithLogitsBackward0", "PowBackward0"}
"""What falls as the likelihood of what was drawn rises, if it stands for each sample."""
_PICKS = {"GatherBackward0", "IndexBackward0", "SelectBackward0"}
"""What picks the log-probability of what was drawn."""
_LOGARITHMS = {"LogSoftmaxBackward0", "SubBackward0", "LogBackward0"}
"""What makes log-probabilities: of `Categorical` the difference to their logsumexp."""
_REWARD = re.compile(r"(^|_)(rewards?|returns?|advantages?|advs?)(_|$)", re.IGNORECASE)
_NO_REWARD = re.compile(r"neg|minus|cost|loss|mean|baseline|old", re.IGNORECASE)


class Signs(NamedTuple):
    """The factors in front of the parts of a loss.

    Attributes:
        losses: Of the losses that torch knows, one each.
        likelihoods: Of the log-likelihoods of what was drawn, one tensor each: of one sample, or of
            each of a batch.
    """

    losses: list[Tensor]
    likelihoods: list[Tensor]


class Rewarded(NamedTuple):
    """How the factor in front of log-likelihoods goes with a reward.

    Attributes:
        variable: The variable that is called so.
        correlation: Between the two, on the device of the loss: 1 if what is rewarded more is made
            less likely, -1 as it should be.
    """

    variable: str
    correlation: Tensor


def signs(loss: Tensor) -> Signs:
    """Walk down from a loss."""
    found = Signs([], [])
    one = torch.ones((), device=loss.device, dtype=torch.float32)
    stack: list[tuple[Any, Tensor]] = [(loss.grad_fn, one)]
    looked_at = 0
    while stack and looked_at < _LIMIT:
        node, factor = stack.pop()
        looked_at += 1
        name = name_of(node)
        if name in _LOSSES and getattr(node, "_saved_reduction", 0):
            found.losses.append(factor)
        elif name in _LIKELIHOODS:
            if name != "PowBackward0" or getattr(node, "_saved_exponent", 0) == 2:
                found.likelihoods.append(-factor)
        elif name in _PICKS:
            if any(name_of(child) in _LOGARITHMS for child, _ in _inputs(node)):
                found.likelihoods.append(factor)
        else:
            stack.extend(reversed([*_onward(node, name, factor)]))
    return found


def _inputs(node: Any) -> Iterator[tuple[Any, int]]:
    """What an operation was given that has a graph, with its place among the operands."""
    return ((child, i) for i, (child, _) in enumerate(node.next_functions) if child is not None)


def _onward(node: Any, name: str, factor: Tensor) -> Iterator[tuple[Any, Tensor]]:
    """What an operation is linear in, with the factor in front of it."""
    inputs = [*_inputs(node)]
    if name in _KEEPS:
        yield from ((child, factor) for child, _ in inputs)
    elif name == "NegBackward0":
        yield from ((child, -factor) for child, _ in inputs)
    elif name == "RsubBackward1":  # a number minus a tensor
        yield from (
            (child, -float(getattr(node, "_saved_alpha", 1)) * factor) for child, _ in inputs
        )
    elif name in ("AddBackward0", "SubBackward0"):
        alpha = float(getattr(node, "_saved_alpha", 1))
        second = alpha if name == "AddBackward0" else -alpha
        yield from ((child, factor * second if i else factor) for child, i in inputs)
    elif name in ("MulBackward0", "DivBackward0") and len(inputs) == 1:
        child, i = inputs[0]
        other = saved(node, "self" if i else "other")
        if other is not None and not (i and name == "DivBackward0"):
            joined = _joined(factor, other, divide=name == "DivBackward0")
            if joined is not None:
                yield child, joined


def _joined(factor: Tensor, other: Tensor, *, divide: bool) -> Tensor | None:
    """A factor times or over another one; None if they do not stand for the same samples."""
    other = other.detach()
    if other.device != factor.device and (other.dim() or not other.is_cpu):
        return None  # a plain number is on the host, and needs no copy
    if factor.numel() > 1 and other.numel() > 1 and factor.numel() != other.numel():
        return None
    if other.numel() > 1:
        other = other.reshape(-1)
    return (factor / other if divide else factor * other).float()


def rewarded(factors: list[Tensor], frame: types.FrameType | None) -> list[Rewarded]:
    """How factors in front of log-likelihoods go with variables that are named as a reward.

    Args:
        factors: One tensor for a batch, or one number for each of its samples.
        frame: Where `backward` was called; the nearest frame with such variables counts.
    """
    single = [factor.reshape(1) for factor in factors if factor.numel() == 1]
    batches = [factor for factor in factors if factor.numel() > 1]
    if not batches and len(single) >= _FEWEST:
        batches = [torch.cat(single)]
    for variables in variables_in_frames(frame) if batches else ():
        found = [
            Rewarded(name, _correlation(factor, values))
            for name, value in variables.items()
            if _REWARD.search(name) and not _NO_REWARD.search(name)
            for factor in batches
            if (values := _numbers(value, factor)) is not None
        ]
        if found:
            return found
    return []


def _numbers(value: object, like: Tensor) -> Tensor | None:
    """A variable as numbers, if it has as many as a factor."""
    if isinstance(value, Tensor):
        plain = type(value) is Tensor and not value.is_meta and value.is_floating_point()
        fits = plain and value.numel() == like.numel() >= _FEWEST
        at_hand = fits and value.device == like.device
        return value.detach().reshape(-1).float() if at_hand else None
    if (
        isinstance(value, list)
        and like.is_cpu
        and len(cast("list[object]", value)) == like.numel() >= _FEWEST
    ):
        numbers = [n for n in cast("list[object]", value) if isinstance(n, float | int)]
        if len(numbers) == like.numel():
            return torch.tensor(numbers, dtype=torch.float32)
    return None


def _correlation(one: Tensor, other: Tensor) -> Tensor:
    """Pearson's, NaN if either is constant."""
    one, other = one - one.mean(), other - other.mean()
    return (one * other).sum() / (one.square().sum() * other.square().sum()).sqrt()
