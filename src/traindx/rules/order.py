"""Where a site stands in its network: rules report the earliest layer, causes stand upstream."""

from __future__ import annotations

from traindx.facts import ModelFacts
from traindx.records import Site
from traindx.run import Run


def network_order(model: ModelFacts) -> dict[str, int]:
    """The place of each module: by its first call; those never seen called last, as registered."""
    modules = model.modules
    in_order = sorted(
        range(len(modules)),
        key=lambda i: (modules[i].order is None, modules[i].order or 0, i),
    )
    return {modules[i].fqn: place for place, i in enumerate(in_order)}


class Places:
    """The places of all sites of a run."""

    def __init__(self, run: Run) -> None:
        self._models = list(run.models)
        self._orders = {name: network_order(model) for name, model in run.models.items()}

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
