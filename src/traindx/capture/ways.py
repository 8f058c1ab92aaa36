"""What lies on the ways of a gradient from a loss back to each parameter, and how much can arrive.

All paths are joined operation by operation, each after everything that its gradient comes from.
Nothing here holds the graph, so norms of weights that are on a device may come later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from traindx.facts import PathFacts

_QUARTER = math.log10(0.25)
_MANY = 4
"""Sigmoids on every path to a parameter from which norms are worth their cost."""


class Step(NamedTuple):
    """One operation on the ways.

    Attributes:
        sigmoid: Whether it is a sigmoid.
        norm: Whether it is a normalization.
        known: Whether it passes on no more gradient than it gets, times its weight's norm.
        weight: The place, among all weights, of the one it multiplies by.
        onward: Places of the operations its gradient flows into, and whether one is on the way
            into the weight, which does not multiply what goes there.
        leaf: The id of the tensor that the gradient ends in.
    """

    sigmoid: bool
    norm: bool
    known: bool
    weight: int | None
    onward: tuple[tuple[int, bool], ...]
    leaf: int | None


class Ways:
    """The ways from one loss.

    Args:
        steps: The operations from the loss to the leaves, each before those it flows into.
        weights: What they multiply by.
        complete: Whether these are all.

    Attributes:
        norms: Spectral norms of the weights, where they are asked for: if every way to some
            parameter passes 4 sigmoids. They may be on a device.
    """

    def __init__(self, steps: list[Step], weights: list[Tensor], *, complete: bool) -> None:
        self._steps = steps
        self._complete = complete
        self._count = len(weights)
        long = (it.sigmoids >= _MANY and it.log10_bound is not None for it in self.facts().values())
        self.norms: list[Tensor] = [spectral_norm(it) for it in weights] if any(long) else []

    def facts(self, norms: Sequence[float] = ()) -> dict[int, PathFacts]:
        """By the id of each leaf; without norms, each counts as 1."""
        log10 = [_log10(norm) for norm in norms] or [0.0] * self._count
        joined: dict[int, _Paths] = {0: _Paths(bounded=self._complete)}
        for i, step in enumerate(self._steps):
            here = joined[i] = joined[i].through(step)
            onward = here if step.weight is None else here.scaled(log10[step.weight])
            for child, into_weight in step.onward:
                path = here if into_weight else onward
                joined[child] = joined[child].beside(path) if child in joined else path
        return {
            step.leaf: joined[i].facts()
            for i, step in enumerate(self._steps)
            if step.leaf is not None
        }


class _Paths(NamedTuple):
    """All paths from the loss to one operation.

    Attributes:
        sigmoids: Sigmoids on the path with the fewest.
        norms: Normalizations on that path.
        log10: Log10 of the gradient's bound, the sum over the paths of the product of their gains.
        bounded: Whether the gain of every operation on every path is known.
    """

    sigmoids: int = 0
    norms: int = 0
    log10: float = 0.0
    bounded: bool = True

    def through(self, step: Step) -> _Paths:
        """The same paths past the operation at their end."""
        return _Paths(
            self.sigmoids + step.sigmoid,
            self.norms + step.norm,
            self.log10 + (_QUARTER if step.sigmoid else 0.0),
            self.bounded and step.known,
        )

    def scaled(self, log10: float) -> _Paths:
        return self._replace(log10=self.log10 + log10)

    def beside(self, other: _Paths) -> _Paths:
        """These paths and others to the same operation, where their gradients add up."""
        easier = min(self, other, key=lambda paths: (paths.sigmoids, paths.norms))
        log10 = _log10_of_sum(self.log10, other.log10)
        return _Paths(easier.sigmoids, easier.norms, log10, self.bounded and other.bounded)

    def facts(self) -> PathFacts:
        return PathFacts(self.sigmoids, self.norms, self.log10 if self.bounded else None)


def _log10(norm: float) -> float:
    return math.log10(norm) if norm > 0 else -math.inf


def _log10_of_sum(a: float, b: float) -> float:
    """Log10 of 10^a + 10^b."""
    low, high = min(a, b), max(a, b)
    return high if low == -math.inf else high + math.log10(1 + 10 ** (low - high))


def spectral_norm(weight: Tensor) -> Tensor:
    """The largest singular value by power iteration from a fixed start, where the weight is.

    A convolution's is bounded by that of its reshaped kernel times the root of its window.
    """
    matrix = weight.detach().flatten(1).float()
    vector = torch.cos(torch.arange(matrix.shape[1], device=matrix.device, dtype=matrix.dtype))
    for _ in range(30):
        vector = F.normalize(torch.mv(matrix.T, torch.mv(matrix, vector)), dim=0)
    window = math.prod(weight.shape[2:])
    return torch.mv(matrix, vector).square().sum().sqrt() * math.sqrt(window)
