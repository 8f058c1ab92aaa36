"""Trainings that go on from saved weights, with an optimizer that has not been given its state."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from torch import nn
from torch.optim.optimizer import Optimizer

from traindx.capture.made import memory_of
from traindx.capture.optimizers import Optimizers, TrackedOptimizer
from traindx.records import Scalar, Site

_MANY = 64
"""Loads, and optimizers, that are remembered."""
_BEGUN = 2
"""Steps after which it is decided whether an optimizer was given a state."""


class _Former(NamedTuple):
    """An optimizer that has stepped.

    Attributes:
        kind: Class name.
        shapes: Of its parameters.
        rate: Learning rate it was made with.
    """

    kind: str
    shapes: tuple[tuple[int, ...], ...]
    rate: float | None


class Resumed:
    """Which modules were loaded into, which optimizers were given a state, and which were not."""

    def __init__(self) -> None:
        self._loaded: list[weakref.ref[nn.Module]] = []
        self._restored: list[weakref.ref[Optimizer]] = []
        self._formers: dict[str, tuple[_Former | None, int]] = {}
        self._decided: set[str] = set()
        self._kept = 0

    def loaded(self, module: object) -> None:
        """A state was loaded into a module."""
        if isinstance(module, nn.Module):
            self._loaded = [*self._loaded[-_MANY:], weakref.ref(module)]

    def restored(self, optimizer: object) -> None:
        """A state was loaded into an optimizer."""
        if isinstance(optimizer, Optimizer):
            self._restored = [*self._restored[-_MANY:], weakref.ref(optimizer)]

    def read(self, content: object) -> None:
        """A file was read."""
        self._kept = max(self._kept, _states(content))

    def scalars(self, step: int, optimizers: Optimizers) -> Iterator[Scalar]:
        """After a measured step: of each optimizer in its first steps, whose training it goes on.

        At the site of the former optimizer's name and its own: the steps that the former had taken.
        """
        for tracked in optimizers:
            known = self._formers.get(tracked.name)
            former = known[0] if known else _former(tracked)
            self._formers[tracked.name] = former, tracked.steps
            if former is not None and tracked.steps >= _BEGUN and tracked.name not in self._decided:
                self._decided.add(tracked.name)
                yield from self._goes_on(step, tracked, former)

    def _goes_on(self, step: int, tracked: TrackedOptimizer, own: _Former) -> Iterator[Scalar]:
        if self._is_restored(tracked) or not self._is_loaded(tracked):
            return
        for name, (former, steps) in [*self._formers.items()][::-1]:
            if name != tracked.name and former == own:
                yield Scalar(step, "optimizer.forgotten", float(steps), Site(name, tracked.name))
                return
        if self._kept == len(own.shapes):
            yield Scalar(step, "optimizer.forgotten", 0.0, Site("", tracked.name))

    def _is_restored(self, tracked: TrackedOptimizer) -> bool:
        return any(ref() is tracked.optimizer for ref in self._restored)

    def _is_loaded(self, tracked: TrackedOptimizer) -> bool:
        """Whether its parameters were loaded before its first step."""
        own = {id(param) for param in tracked.params()}
        modules = (module for ref in self._loaded if (module := ref()) is not None)
        return any(own <= {id(p) for p in module.parameters()} for module in modules)


def _former(tracked: TrackedOptimizer) -> _Former | None:
    """What is to be remembered of an optimizer; None if it has next to nothing to forget."""
    optimizer = tracked.optimizer
    if optimizer is None or memory_of(optimizer) < _BEGUN:
        return None
    group = optimizer.param_groups[0]
    rate = group.get("initial_lr", group.get("lr"))
    shapes = tuple(tuple(param.shape) for param in tracked.params())
    return _Former(tracked.kind, shapes, float(rate) if isinstance(rate, int | float) else None)


def _states(content: object, depth: int = 3) -> int:
    """Parameters of which a file holds an optimizer's state; 0 if it holds none."""
    if not isinstance(content, dict) or not depth:
        return 0
    held = cast("dict[str, Any]", content)
    groups, state = held.get("param_groups"), held.get("state")
    if isinstance(groups, list) and isinstance(state, dict) and state:
        every = cast("list[dict[str, list[object]]]", groups)
        return sum(len(group.get("params", ())) for group in every)
    return max((_states(value, depth - 1) for value in [*held.values()][:_MANY]), default=0)
