"""Freezing that has no effect, and a frozen last layer that is as it was initialized."""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from torch import Tensor, nn

from traindx.capture.arrays import sample
from traindx.capture.first_weights import plain_weight
from traindx.capture.models import TrackedModel
from traindx.capture.owners import common, own_parameters, parent
from traindx.capture.transfer import Lists, Numbers, Unread
from traindx.records import Scalar, Site

_LOOKS = 4
"""Measured steps in which a model is looked at; again when its last layer is another one."""
_MEANT = re.compile(r"requires?d?_?grads?")
"""Names that are taken to be meant for `requires_grad`."""
_HEADS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
"""Layers whose weights and biases torch draws uniformly between -b and b, b = 1/sqrt(fan_in)."""
_FEW = 32
"""Weights that it takes to know a distribution."""
_DEVIATIONS = 4.0
_SPREAD = 0.447
"""Standard deviation of the RMS of n uniform numbers, over the RMS, times the root of n."""


class Freezing:
    """What is found in the first steps of a model, and after a change of its last layer."""

    def __init__(self) -> None:
        self._looks: dict[str, int] = {}
        self._heads: dict[str, _Head] = {}

    def parts(
        self, step: int, models: Iterable[TrackedModel], held: Callable[[], set[int]]
    ) -> list[Unread]:
        """What is to be read of the models, and what is known at once.

        Args:
            step: The step that has ended.
            models: The models in training.
            held: Gives the ids of the parameters that an optimizer holds.
        """
        found: list[Unread] = []
        for model in models:
            if self._looks_at(model):
                found += [*_ignored(step, model, held()), *_fresh(step, model)]
        return found

    def _looks_at(self, model: TrackedModel) -> bool:
        looks, known = self._looks.get(model.name, 0), self._heads.get(model.name)
        if looks < _LOOKS or known is None or not known.is_there(model):
            head = _head(model)
            now = None if head is None else _Head.of(*head)
            if now is not None and (known is None or not known.is_like(now)):
                self._heads[model.name], looks = now, 0
        self._looks[model.name] = looks + 1
        return looks < _LOOKS


class _Head(NamedTuple):
    """A last layer: to look for it among all modules at each measured step would cost much."""

    fqn: str
    module: weakref.ref[nn.Module]
    weight: int
    trainable: bool

    @classmethod
    def of(cls, fqn: str, module: nn.Module) -> _Head:
        weight = plain_weight(module)
        trainable = weight is None or weight.requires_grad
        return cls(fqn, weakref.ref(module), id(weight), trainable)

    def is_like(self, other: _Head) -> bool:
        """Whether it has the same weight, as frozen as it was."""
        return (self.weight, self.trainable) == (other.weight, other.trainable)

    def is_there(self, model: TrackedModel) -> bool:
        """Whether it is still at its place, and as frozen as it was."""
        module = self.module()
        if module is None or model.fqn_of(module) != self.fqn:
            return False
        held = own_parameters(module)
        weight = held["weight"] if "weight" in held else None  # noqa: SIM401  # may have no `get`
        if weight is not None and id(weight) == self.weight:
            return weight.requires_grad is self.trainable
        return self.is_like(_Head.of(self.fqn, module))


def _ignored(step: int, model: TrackedModel, held: set[int]) -> Iterator[Unread]:
    """Parameters that somebody meant to freeze and that are trained."""
    paths: list[str] = []
    params: set[int] = set()
    for fqn, module in model.modules():
        if _is_switched_off(module):
            trained = {id(p) for p in module.parameters() if _is_trained(p, held)}
            if trained:
                paths.append(fqn)
                params |= trained
    for fqn, param in model.parameters():
        if _is_switched_off(param) and _is_trained(param, held):
            paths.append(parent(fqn))
            params.add(id(param))
    if params:
        scalar = Scalar(step, "freeze.ignored", float(len(params)), Site(model.name, common(paths)))
        yield Unread([], [], lambda _numbers, _lists: [scalar])


def _is_switched_off(thing: object) -> bool:
    """Whether an attribute of its own says so, which is `requires_grad` of no module."""
    return any(value is False and _MEANT.fullmatch(name) for name, value in [*vars(thing).items()])


def _is_trained(param: Tensor, held: set[int]) -> bool:
    return param.requires_grad and param.grad is not None and id(param) in held


def _head(model: TrackedModel) -> tuple[str, nn.Module] | None:
    """The module called last of those that have parameters of their own."""
    called = [
        (model.order[fqn], fqn, module)
        for fqn, module in model.modules()
        if fqn in model.order and next(iter(module.parameters(recurse=False)), None) is not None
    ]
    if not called:
        return None
    _, fqn, module = max(called, key=lambda one: one[0])
    return fqn, module


def _fresh(step: int, model: TrackedModel) -> Iterator[Unread]:
    """Whether a frozen last layer has the very distribution that torch draws its weights from."""
    head = _head(model)
    if head is None or not isinstance(head[1], _HEADS):
        return
    fqn, module = head
    weight = plain_weight(module)
    if weight is None or weight.requires_grad or weight.numel() < _FEW:
        return
    bound = 1 / math.sqrt(weight[0].numel())
    entries = sample(weight.detach()).float()
    numbers: list[float | Tensor] = [entries.abs().max(), entries.square().mean().sqrt()]
    count, site = entries.numel(), Site(model.name, fqn)

    def items(numbers: Numbers, _lists: Lists) -> list[Scalar]:
        largest, rms = numbers
        off = abs(rms * math.sqrt(3) / bound - 1)
        fresh = largest <= bound * 1.001 and off < _DEVIATIONS * _SPREAD / math.sqrt(count)
        return [Scalar(step, "freeze.fresh", float(fresh), site)]

    yield Unread(numbers, [], items)
