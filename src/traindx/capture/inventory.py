"""What is known of the models, optimizers and losses of a run, and what of it is news."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from torch import Tensor

from traindx.capture.describe import describe
from traindx.capture.models import LooseParameters, Models, TrackedModel
from traindx.capture.optimizers import Optimizers, TrackedOptimizer
from traindx.facts import Facts, LossFacts

_SETTLING = 3
"""Steps in which what is known may still grow with every step."""
_PLAIN = {bool, int, float, str, type(None)}

_Several = tuple[object, ...]

_Parts = tuple[list[int], list[tuple[int, bool]]]
"""The ids of a model's modules, and of its parameters, with whether they require a gradient."""
_Held = tuple[list[dict[str, object]], list[int]]
"""The settings of an optimizer's groups, and the ids of what it holds."""


class Inventory:
    """The facts of a run, written when they are new or have changed."""

    def __init__(self, models: Models, optimizers: Optimizers) -> None:
        self._models = models
        self._optimizers = optimizers
        self._written: dict[str, Facts] = {}
        self._parts: dict[str, _Parts] = {}
        self._settled: dict[str, _Held | None] = {}

    def is_news(self, facts: LossFacts) -> bool:
        """Whether what went into a loss is not what was last told of it."""
        key = f"loss {facts.models}"
        before, self._written[key] = self._written.get(key), facts
        return before != facts

    def forget(self, model: TrackedModel) -> None:
        """A model is to be described again: more is known of it."""
        self._parts.pop(model.name, None)

    def news(self, step: int, models: Iterable[TrackedModel]) -> list[Facts]:
        """Facts that are new or have changed since they were last asked for, with these models."""
        living: set[int] = set()
        changed: list[TrackedModel] = []
        for model in models:
            params = [(id(param), param.requires_grad) for _, param in model.parameters()]
            if model.called or model.compiled:
                living.update([key for key, _ in params])
            if model.confirmed and (self._rebuilt(model, params) or step < _SETTLING):
                changed.append(model)
        facts: dict[str, Facts] = {
            f"optimizer {tracked.name}": self._optimizer(tracked, living)
            for tracked in self._optimizers
            if not self._is_settled(tracked, living)
        }
        for model in changed:
            facts[f"model {model.name}"] = describe(model, self._holders())
        if not facts:
            return []
        news = [value for key, value in facts.items() if self._written.get(key) != value]
        self._written.update(facts)
        return news

    def _rebuilt(self, model: TrackedModel, params: list[tuple[int, bool]]) -> bool:
        """Whether a model is new, or has other parts or others frozen than when last asked."""
        parts = [id(module) for _, module in model.modules()], params
        before, self._parts[model.name] = self._parts.get(model.name), parts
        return before != parts

    def _is_settled(self, tracked: TrackedOptimizer, living: set[int]) -> bool:
        """Whether an optimizer is as it was, and holds nothing but parameters of called models."""
        held = _held(tracked) if tracked.steps >= _SETTLING else None
        if held is not None and not living.issuperset(held[1]):
            held = None
        before, self._settled[tracked.name] = self._settled.get(tracked.name), held
        return held is not None and held == before

    def _holders(self) -> dict[int, tuple[str, ...]]:
        """Names of the optimizers that hold each parameter."""
        holders: dict[int, tuple[str, ...]] = {}
        for tracked in self._optimizers:
            for param in tracked.params():
                holders[id(param)] = (*holders.get(id(param), ()), tracked.name)
        return holders

    def _optimizer(self, tracked: TrackedOptimizer, living: set[int]) -> Facts:
        # Before its third step other optimizers, which hold the rest, may not have stepped yet.
        stale = _stale(tracked, living) if tracked.steps >= _SETTLING else []
        return tracked.facts(stale, self._unheld() if stale else [])

    def _unheld(self) -> list[str]:
        """Parameters of trained models that have a gradient but no optimizer."""
        held = self._optimizers.held()
        return [
            f"{model.name}/{fqn}"
            for model in self._models.confirmed()
            if not isinstance(model, LooseParameters)
            for fqn, param in model.trainable()
            if param.grad is not None and id(param) not in held
        ]


def _stale(tracked: TrackedOptimizer, living: set[int]) -> list[Tensor]:
    """Tensors an optimizer holds that are in no called model, and get no gradient."""
    return [
        param
        for param in tracked.params()
        if param.requires_grad and id(param) not in living and tracked.is_starved(param)
    ]


def _held(tracked: TrackedOptimizer) -> _Held | None:
    """The settings of an optimizer and the ids of what it holds; None if a setting may change.

    A tensor or a list can be written to, and a tensor must not be kept.
    """
    settings: list[dict[str, object]] = []
    params: list[int] = []
    kinds: set[type] = set()
    optimizer = tracked.optimizer
    for group in () if optimizer is None else optimizer.param_groups:
        rest = {**group}
        params += map(id, rest.pop("params"))
        kinds.update(map(type, rest.values()))
        settings.append(rest)
    if tuple in kinds:
        kinds.remove(tuple)
        every = [value for rest in settings for value in rest.values()]
        several = [cast(_Several, value) for value in every if type(value) is tuple]
        kinds.update(*[map(type, each) for each in several])
    return (settings, params) if kinds <= _PLAIN else None
