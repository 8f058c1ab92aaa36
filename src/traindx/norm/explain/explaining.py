"""Everything on which two layers differ, the furthest felt first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from types import ModuleType

from traindx.norm.explain import edges, running, scaling, sets
from traindx.norm.explain.difference import Difference, Field, Given, Reach
from traindx.norm.spec import Axes, NormSpec

_TOGETHER = {"window.before", "window.after", "window.alpha", "window.beta", "window.k"}
"""One sentence tells of all: only the first that differs says it."""


@cache
def every_field() -> tuple[Field, ...]:
    """Every answer that has an explanation."""
    return tuple(field for module in (sets, scaling, running, edges) for field in _of(module))


def _of(module: ModuleType) -> Iterator[Field]:
    return (value for value in vars(module).values() if isinstance(value, Field))


def canonical(spec: NormSpec) -> NormSpec:
    """One name for one layer: groups of a channel each are InstanceNorm, as Keras has it."""
    if spec.groups is None or spec.groups.count != -1:
        return spec
    apart = Axes((0, spec.groups.axis), others=True)
    return replace(spec, kind="InstanceNorm", reduced=apart, groups=None)


def explain(a: NormSpec, b: NormSpec, given: Given | None = None) -> list[Difference]:
    """What differs from `a` to `b`, and what it does to a model that is moved."""
    given = given or Given()
    a, b = canonical(a), canonical(b)
    found = [field.difference(a, b, given) for field in every_field()]
    differing = [one for one in found if one is not None]
    merged = [one for one in differing if one.field in _TOGETHER][1:]
    kept = [one for one in differing if one not in merged]
    order = list(Reach)
    return sorted(kept, key=lambda one: order.index(one.reach))
