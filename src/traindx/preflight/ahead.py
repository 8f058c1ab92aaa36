"""A look at the next steps of a training, where the first one leaves parameters without gradient.

One optimizer may train several parts in turn, by losses of which each reaches its own. From the
first loss alone that cannot be told from a graph that is cut by mistake.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from torch import nn

from traindx.preflight.case import Case
from traindx.preflight.isolation import State

_STEPS = 8
"""Further steps that are waited for, at most."""
_SECONDS = 10.0
"""And how long, at most."""


def without_gradient(case: Case) -> list[nn.Parameter]:
    """The parameters to be trained that its optimizer holds and no backward pass has reached."""
    optimizer = case.optimizer
    groups = [] if optimizer is None else optimizer.param_groups
    held = {id(param) for group in groups for param in group["params"]}
    return [p for _, p in case.trainable() if id(p) in held and p.grad is None]


def with_gradient(case: Case) -> frozenset[int]:
    """The ids of the parameters that a backward pass of the program has reached."""
    return frozenset(id(param) for _, param in case.trainable() if param.grad is not None)


class Ahead:
    """A training that goes on after its first step, until the gradient has reached everything.

    Args:
        case: What is to be probed, at its first step.
        left: The parameters without gradient.
        clock: Seconds.
    """

    def __init__(
        self,
        case: Case,
        left: Sequence[nn.Parameter],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._case = case
        self._state = State(case)
        self._left = list(left)
        self._clock = clock
        self._until = clock() + _SECONDS
        self._steps = 0
        self._reached: set[int] = set()

    def is_enough(self) -> bool:
        """Note which gradients there are at a step; whether no more steps are needed."""
        self._steps += 1
        found = {id(param) for param in self._left if param.grad is not None}
        self._reached |= found
        self._left = [param for param in self._left if id(param) not in found]
        return not self._left or self._steps >= _STEPS or self._clock() > self._until

    def case(self) -> Case:
        """The case as it was at its first step, knowing what later ones have reached."""
        self._state.restore()
        return replace(self._case, graded=self._case.graded | self._reached)
