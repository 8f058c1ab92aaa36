"""Optimizers from when they are made: those that never step, and those that replace another."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from traindx.capture.models import TrackedModel
from traindx.capture.optimizers import Optimizers
from traindx.capture.owners import Owners, common, parent
from traindx.records import Scalar, Site

_MANY = 64
"""Optimizers remembered before those that are gone are forgotten."""


@dataclass
class _Line:
    """Optimizers of the very same parameters, one made after the other.

    Attributes:
        holder: The module that holds their first parameter.
        made: The step the last one was made at.
        count: How many replaced one that had been there for a step.
        steps: Steps between the first and the last.
        memory: Steps over which the last one averages.
    """

    holder: weakref.ref[nn.Module]
    made: int
    count: int = 0
    steps: int = 0
    memory: float = 0.0


_Made = tuple[weakref.ref[Optimizer], int]
"""An optimizer, and the step that it was made at."""
_Key = tuple[str, int, int]
"""Kind, id of the first parameter, and number of parameters."""


class MadeOptimizers:
    """Every optimizer made since we listen, held weakly."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._made: list[_Made] = []
        self._waiting: list[_Made] = []
        self._lines: dict[_Key, _Line] = {}

    def add(self, optimizer: Optimizer, step: int) -> None:
        """One has been made, or is first heard of, after so many steps."""
        if any(ref() is optimizer for ref, _ in self._made):
            return
        if len(self._made) >= _MANY:
            self._made = [one for one in self._made if one[0]() is not None]
            self._lines = {
                key: line for key, line in self._lines.items() if line.holder() is not None
            }
        made = weakref.ref(optimizer), step
        self._made.append(made)
        self._waiting.append(made)
        params = _params(optimizer)
        holder = self._owners.holder(params[0]) if params else None
        if holder is None:
            return  # whether its parameters are those of another one cannot be told
        key = _key(optimizer)
        line = self._lines.get(key)
        if line is None or line.holder() is not holder:
            line = self._lines[key] = _Line(weakref.ref(holder), step)
        if step > line.made:
            line.count += 1
            line.steps += step - line.made
        line.made, line.memory = step, memory_of(optimizer)

    def scalars(
        self, step: int, models: Iterable[TrackedModel], stepped: Optimizers, *, compiled: bool
    ) -> Iterator[Scalar]:
        """What is known after a step of those that replaced another or have not stepped.

        Args:
            step: The step.
            models: All models.
            stepped: The optimizers that have stepped.
            compiled: Whether calls of the models are not seen.
        """
        for made in [*self._waiting]:  # another thread may make one
            optimizer = made[0]()
            if optimizer is None or stepped.has_stepped(optimizer):
                self._waiting.remove(made)
        lines = {key: line for key, line in [*self._lines.items()] if line.count}
        if lines or self._waiting:
            models = [*models]
            yield from self._replaced(step, models, lines)
            yield from self._idle(step, models, stepped, compiled)

    def _replaced(
        self, step: int, models: list[TrackedModel], lines: dict[_Key, _Line]
    ) -> Iterator[Scalar]:
        """Of each part of a model the longest line of optimizers of its parameters."""
        longest: dict[Site, _Line] = {}
        for key, line in lines.items():
            site = self._site(key, models)
            if site is not None and (site not in longest or line.count > longest[site].count):
                longest[site] = line
        for site, line in longest.items():
            yield Scalar(step, "optimizer.replaced", float(line.count), site)
            yield Scalar(step, "optimizer.life", line.steps / line.count, site)
            yield Scalar(step, "optimizer.memory", line.memory, site)

    def _site(self, key: _Key, models: list[TrackedModel]) -> Site | None:
        """The part of a model that has the parameters of a line; None if its last one is gone."""
        living = (optimizer for ref, _ in self._made[::-1] if (optimizer := ref()) is not None)
        last = next((optimizer for optimizer in living if _key(optimizer) == key), None)
        own = {id(param) for param in _params(last)} if last is not None else set[int]()
        for model in models if own else ():
            found = [parent(fqn) for fqn, param in model.parameters() if id(param) in own]
            if found:
                return Site(model.name, common(found))
        return None

    def _idle(
        self, step: int, models: Iterable[TrackedModel], stepped: Optimizers, compiled: bool
    ) -> Iterator[Scalar]:
        idle = [
            (optimizer, step + 1 - made)
            for ref, made in [*self._waiting]
            if (optimizer := ref()) is not None
        ]
        if idle:
            held = stepped.held()
            called = [m for m in models if compiled or m.called_at == step]
            called = [m for m in called if m.is_of_this_thread]
            found = {site: n for one, n in idle for site in _waiting(one, called, held)}
            for site, steps in found.items():
                yield Scalar(step, "optimizer.waiting", float(steps), site)

    def held(self) -> set[int]:
        """Ids of the parameters that some living one holds."""
        living = (optimizer for ref, _ in self._made if (optimizer := ref()) is not None)
        return {id(param) for optimizer in living for param in _params(optimizer)}


def _waiting(optimizer: Optimizer, models: list[TrackedModel], held: set[int]) -> Iterator[Site]:
    """Of each model the part whose parameters only this one holds, if they have gradients.

    Only gradients of those models are looked at: another thread may be freeing those of its own.

    A model of which that is all has no trained part, and so is none of the run's: like an optimizer
    it is named as a part of the run.
    """
    own = {id(param) for param in _params(optimizer)} - held
    for model in models if own else ():
        params = ((fqn, param) for fqn, param in model.parameters() if id(param) in own)
        found = [parent(fqn) for fqn, param in params if param.grad is not None]
        if found:
            shared = common(found)
            part = shared or model.confirmed
            yield Site(model.name, shared) if part else Site("", model.name)


def _params(optimizer: Optimizer) -> list[Tensor]:
    return [param for group in optimizer.param_groups for param in group["params"]]


def _key(optimizer: Optimizer) -> _Key:
    params = _params(optimizer)
    return type(optimizer).__name__, id(params[0]) if params else 0, len(params)


def memory_of(optimizer: Optimizer) -> float:
    """Steps over which it averages gradients or their squares; 0 if it keeps nothing of them.

    That is 1/(1 - m) of the shortest average, with weights m, m^2, …
    """
    group = optimizer.param_groups[0] if optimizer.param_groups else {}
    betas = group.get("betas")
    given = cast("Iterable[object]", betas) if isinstance(betas, tuple | list) else ()
    decays = [*given, group.get("momentum"), group.get("alpha")]
    known = [float(m) for m in decays if isinstance(m, float | int) and 0 < m < 1]
    return 1 / (1 - min(known)) if known else 0.0
