"""What is known of the models, optimizers and losses of a run, and what of it is news."""

from __future__ import annotations

from torch import Tensor

from traindx.capture.describe import describe
from traindx.capture.models import LooseParameters, Models, TrackedModel
from traindx.capture.optimizers import Optimizers, TrackedOptimizer
from traindx.facts import Facts, LossFacts

_SETTLING = 3
"""Steps in which what is known may still grow with every step."""


class Inventory:
    """The facts of a run, written when they are new or have changed."""

    def __init__(self, models: Models, optimizers: Optimizers) -> None:
        self._models = models
        self._optimizers = optimizers
        self._written: dict[str, Facts] = {}
        self._parts: dict[str, list[tuple[int, bool]]] = {}

    def is_news(self, facts: LossFacts) -> bool:
        """Whether what went into a loss is not what was last told of it."""
        key = f"loss {facts.models}"
        before, self._written[key] = self._written.get(key), facts
        return before != facts

    def forget(self, model: TrackedModel) -> None:
        """A model is to be described again: more is known of it."""
        self._parts.pop(model.name, None)

    def news(self, step: int) -> list[Facts]:
        """Facts that are new or have changed since they were last asked for."""
        facts: dict[str, Facts] = {}
        for tracked in self._optimizers:
            facts[f"optimizer {tracked.name}"] = self._optimizer(tracked)
        for model in self._models.confirmed():
            if self._rebuilt(model) or step < _SETTLING:
                facts[f"model {model.name}"] = describe(model, self._holders())
        news = [value for key, value in facts.items() if self._written.get(key) != value]
        self._written.update(facts)
        return news

    def _rebuilt(self, model: TrackedModel) -> bool:
        """Whether a model is new, or has other parts or others frozen than when last asked."""
        parts = [(id(module), True) for _, module in model.modules()]
        parts += [(id(param), param.requires_grad) for _, param in model.parameters()]
        before, self._parts[model.name] = self._parts.get(model.name), parts
        return before != parts

    def _holders(self) -> dict[int, tuple[str, ...]]:
        """Names of the optimizers that hold each parameter."""
        holders: dict[int, tuple[str, ...]] = {}
        for tracked in self._optimizers:
            for param in tracked.params():
                holders[id(param)] = (*holders.get(id(param), ()), tracked.name)
        return holders

    def _optimizer(self, tracked: TrackedOptimizer) -> Facts:
        # Before its third step other optimizers, which hold the rest, may not have stepped yet.
        stale = self._stale(tracked) if tracked.steps >= _SETTLING else []
        return tracked.facts(stale, self._unheld() if stale else [])

    def _stale(self, tracked: TrackedOptimizer) -> list[Tensor]:
        """Tensors an optimizer holds that are in no called model, and get no gradient."""
        called = (model for model in self._models if model.called or model.compiled)
        living = {id(param) for model in called for _, param in model.parameters()}
        return [
            param
            for param in tracked.params()
            if param.requires_grad and id(param) not in living and tracked.is_starved(param)
        ]

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
