"""The places of a run by name: what a person types, found among modules and parameters."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase

from traindx.errors import UsageError
from traindx.findings import Finding
from traindx.messages import listed, say
from traindx.records import Site
from traindx.report.layers import Layer, sites
from traindx.report.story import judged
from traindx.report.untrusted import plain
from traindx.run import Run


def all_sites(run: Run) -> list[Site]:
    """Every module and parameter, in network order; the models themselves first of their own."""
    return [site for model in run.models.values() for site in sites(model)]


def matching(run: Run, word: str) -> list[Site]:
    """The places that a person means by `word`.

    That is a dotted path, with the model's name before it or not, or a pattern with `*` and `?`. A
    layer stands for its parameters, too, unless they are named.

    Raises:
        UsageError: There is none.
    """
    known = all_sites(run)
    exact = [site for site in known if word in _names(site)]
    found = exact or [site for site in known if _fits(site, word)]
    if found:
        return found
    raise UsageError(_nothing(run, word, known))


def _names(site: Site) -> tuple[str, ...]:
    if not site.fqn:
        return (site.model,)
    return site.fqn, f"{site.model}.{site.fqn}", f"{site.model}/{site.fqn}"


def _fits(site: Site, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in _names(site))


def _nothing(run: Run, word: str, known: list[Site]) -> str:
    names = {name: None for site in known for name in _names(site)[:2]}
    if not names:
        return say("The run knows no model, so there is nothing to show of `{name}`.", name=word)
    near = get_close_matches(word, names, n=3, cutoff=0.3)
    models = listed(f"`{plain(model)}`" for model in run.models)
    if not near:
        return say("There is no layer or parameter `{name}` in {models}.", name=word, models=models)
    return say(
        "There is no layer or parameter `{name}` in {models}; the nearest are {nearest}.",
        name=word,
        models=models,
        nearest=listed(f"`{plain(name)}`" for name in near),
    )


def findings_at(run: Run, site: Site, *, active: bool = True) -> list[Finding]:
    """The findings at a place."""
    found = judged(run).findings
    return [f for f in found if f.evidence.site == site and f.active is active]


def findings_of(run: Run, layer: Layer) -> list[Finding]:
    """The active findings at a layer or one of its parameters."""
    places = {layer.site, *(Site(layer.site.model, param.fqn) for param in layer.params)}
    return [f for f in judged(run).findings if f.evidence.site in places and f.active]
