"""Where a site stands in its network: rules report the earliest layer, causes stand upstream."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from traindx.facts import ModelFacts, OptimizerFacts
from traindx.records import Site
from traindx.run import Run

T = TypeVar("T")
_MODELS = 512
"""Of how many descriptions of models it is remembered at most what follows from them."""


def of_facts(function: Callable[[ModelFacts], T]) -> Callable[[ModelFacts], T]:
    """Compute once what follows from a model's description: it is asked at every measured step.

    The result is shared by all who ask: it is not to be changed.
    """
    remembered: dict[int, tuple[ModelFacts, T]] = {}  # a model that is held keeps its id

    @wraps(function)
    def asked(model: ModelFacts) -> T:
        known = remembered.get(id(model))
        if known is None:
            if len(remembered) >= _MODELS:
                remembered.clear()
            known = remembered[id(model)] = model, function(model)
        return known[1]

    return asked


@of_facts
def network_order(model: ModelFacts) -> dict[str, int]:
    """The place of each module, by its fqn."""
    return {module.fqn: place for place, module in enumerate(model.in_network_order())}


@of_facts
def _trainers(model: ModelFacts) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for param in model.params for name in param.optimizers))


def optimizers_of(run: Run, model: ModelFacts) -> list[OptimizerFacts]:
    """The optimizers that hold parameters of a model: of hundreds of folds each has its own."""
    return [run.optimizers[name] for name in _trainers(model) if name in run.optimizers]


def ancestors(fqn: str) -> list[str]:
    """The modules that hold a module, the model itself first, and the module."""
    parts = fqn.split(".") if fqn else []
    return [".".join(parts[:depth]) for depth in range(len(parts) + 1)]


class Places:
    """The places of all sites of a run."""

    def __init__(self, run: Run) -> None:
        self._models = list(run.models)
        self._orders = {name: network_order(model) for name, model in run.models.items()}
        self._held: dict[str, set[str]] = {}
        for model in run.models.values():
            for param in model.params:
                for optimizer in param.optimizers:
                    self._held.setdefault(optimizer, set()).add(model.name)

    def of(self, site: Site) -> tuple[int, int]:
        """Its model's place among the models, and its module's in the model.

        A model comes before its modules, the run and its optimizers before all models.
        """
        order = self._orders.get(site.model)
        if order is None:
            return -1, 0
        owner = site.fqn if site.fqn in order else site.fqn.rpartition(".")[0]
        place = order.get(owner, len(order)) if site.fqn else -1
        return self._models.index(site.model), place

    def in_model(self, site: Site) -> bool:
        """Whether a site is a model or part of one; the run, an optimizer or a loss is not."""
        return site.model in self._orders

    def meet(self, one: Site, other: Site) -> bool:
        """Whether two sites concern a model in common."""
        return not self._concerned(one).isdisjoint(self._concerned(other))

    def _concerned(self, site: Site) -> set[str]:
        """Models: of a layer its own, of an optimizer those it trains, of a loss those it reaches.

        What concerns the run as a whole concerns all of them.
        """
        if site.model in self._orders:
            return {site.model}
        if site.model:
            return {site.model, *site.models}
        return self._held.get(site.fqn, {"", *self._models})
