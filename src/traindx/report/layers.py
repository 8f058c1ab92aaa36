"""The layers of a model in network order, and where among them a site lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.facts import ModelFacts, ParamFacts
from traindx.messages import Message, listed, say
from traindx.records import Site
from traindx.report.untrusted import plain
from traindx.run import Run


@dataclass(frozen=True, slots=True)
class Layer:
    """A module that computes: it holds parameters of its own, or no other module.

    Attributes:
        site: Where it is.
        kind: Its class name.
        position: Its place in the forward pass, from 1; None if it was never seen called.
        params: The parameters it owns.
    """

    site: Site
    kind: str
    position: int | None
    params: tuple[ParamFacts, ...]

    @property
    def num_params(self) -> int:
        """Elements of its parameters together."""
        return sum(_elements(param) for param in self.params)

    @property
    def main_param(self) -> Site | None:
        """The site of its largest parameter, the weight in most layers."""
        if not self.params:
            return None
        return Site(self.site.model, max(self.params, key=_elements).fqn)


def _elements(param: ParamFacts) -> int:
    count = 1
    for extent in param.shape:
        count *= extent
    return count


def params_by_module(model: ModelFacts) -> dict[str, list[ParamFacts]]:
    """The parameters of each module that owns any."""
    owned: dict[str, list[ParamFacts]] = {}
    for param in model.params:
        owned.setdefault(param.module, []).append(param)
    return owned


def layers(model: ModelFacts) -> list[Layer]:
    """The layers of a model in network order."""
    owned = params_by_module(model)
    parents = {parent for module in model.modules for parent in _parents(module.fqn)}
    chosen = [m for m in model.in_network_order() if m.fqn in owned or m.fqn not in parents]
    return [
        Layer(
            site=Site(model.name, module.fqn),
            kind=module.kind,
            position=None if module.order is None else i,
            params=tuple(owned.get(module.fqn, ())),
        )
        for i, module in enumerate(chosen, start=1)
    ]


def signals(run: Run, layer: Layer) -> tuple[tuple[str, Site], tuple[str, Site | None]]:
    """The quantities, each with its site, by which a layer's signal and gradient are told."""
    if run.is_preflight:
        return ("probe.output_rms", layer.site), ("probe.gradient_rms", layer.site)
    return ("output.rms", layer.site), ("grad.rms", layer.main_param)


def sites(model: ModelFacts) -> Iterator[Site]:
    """Every module and, right after it, its own parameters, in network order."""
    owned = params_by_module(model)
    for module in model.in_network_order():
        yield Site(model.name, module.fqn)
        for param in owned.get(module.fqn, ()):
            yield Site(model.name, param.fqn)


def _parents(fqn: str) -> Iterator[str]:
    while fqn:
        fqn = fqn.rpartition(".")[0]
        yield fqn


def where(run: Run, site: Site) -> Message:
    """A site as a person finds it: model, path, class and place in the network."""
    if not site.model:
        return listed([plain(site.fqn)]) if site.fqn else say("the whole run")
    name = plain(f"{site.model} · {site.fqn}" if site.fqn else site.model)
    model = run.models.get(site.model)
    about = _about(model, site.fqn) if model else ""
    return say("{name} ({about})", name=name, about=about) if about else listed([name])


def _about(model: ModelFacts, fqn: str) -> Message:
    modules = {module.fqn: module.kind for module in model.modules}
    if not fqn:
        return listed([plain(model.kind)])
    owner = fqn if fqn in modules else fqn.rpartition(".")[0]
    kind = plain(modules.get(owner, ""))
    order = layers(model)
    place = next((layer.position for layer in order if layer.site.fqn == owner), None)
    if place is None or not kind:
        return listed([kind] if kind else [])
    return say("{kind}, layer {place} of {layers}", kind=kind, place=place, layers=len(order))
