"""Weights and outputs of normalizations as the rules see them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from traindx.facts import ModelFacts, ModuleFacts
from traindx.ledger import NEVER
from traindx.records import Site
from traindx.rules.order import of_facts
from traindx.run import Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_SIZES = ("normalized_shape", "num_groups", "num_features")


@of_facts
def normalizations(model: ModelFacts) -> list[ModuleFacts]:
    """The layers that normalize, in the order of calls."""
    return [
        module
        for module in model.in_network_order()
        if "eps" in module.options and any(size in module.options for size in _SIZES)
    ]


def weight_site(model: ModelFacts, norm: ModuleFacts) -> Site:
    """Where a layer's weight is, if it has one."""
    return Site(model.name, _param(norm.fqn, "weight"))


def has_weight(model: ModelFacts, norm: ModuleFacts) -> bool:
    """Whether it multiplies by a weight of its own."""
    return _param(norm.fqn, "weight") in _params(model)


def _param(norm: str, name: str) -> str:
    return f"{norm}.{name}".removeprefix(".")


@of_facts
def _params(model: ModelFacts) -> frozenset[str]:
    return frozenset(param.fqn for param in model.params)


class _Places(NamedTuple):
    """Where the normalizations are, their weights and their biases, and which have these."""

    outputs: tuple[Site, ...]
    weights: tuple[Site, ...]
    biases: tuple[Site, ...]
    weighted: tuple[bool, ...]
    biased: tuple[bool, ...]


@of_facts
def _places(model: ModelFacts) -> _Places:
    fqns = [norm.fqn for norm in normalizations(model)]
    named = [[_param(fqn, name) for fqn in fqns] for name in ("weight", "bias")]
    weights, biases = (tuple(Site(model.name, name) for name in names) for names in named)
    has = (tuple(name in _params(model) for name in names) for names in named)
    return _Places(tuple(Site(model.name, fqn) for fqn in fqns), weights, biases, *has)


def doubtful(run: Run, model: ModelFacts, share: float) -> list[ModuleFacts]:
    """The normalizations of whose unit variance not clearly `share` was left the last time."""
    at = _places(model)
    if not at.outputs:
        return []
    outputs = run.newest("output.rms", at.outputs)
    zeros = run.newest("output.zero_fraction", at.outputs).values.tolist()
    weights = _together(run, at.weights, at.weighted, 1.0, outputs.steps)
    biases = _together(run, at.biases, at.biased, 0.0, outputs.steps)
    found: list[ModuleFacts] = []
    rows = zip(normalizations(model), outputs.values.tolist(), zeros, weights, biases, strict=True)
    for (norm, out, masked, weight, bias), step in zip(rows, outputs.steps.tolist(), strict=True):
        size = out * out / (1 - masked if masked < 1 else 1.0)
        left, scaled = size - bias * bias, weight * weight
        # What is close to the limit, or cannot be told exactly, is looked at one by one.
        clear = left > 1.001 * share * scaled and size < 1e9 * scaled
        if not clear and step != NEVER:
            found.append(norm)
    return found


def _together(
    run: Run, sites: tuple[Site, ...], there: tuple[bool, ...], absent: float, steps: Integers
) -> list[float]:
    """Sizes of parameters, NaN of one that was not measured with its output last."""
    newest = run.newest("param.rms", sites)
    sizes = zip(there, newest.values.tolist(), (newest.steps == steps).tolist(), strict=True)
    return [(size if same else math.nan) if has else absent for has, size, same in sizes]


def surviving(run: Run, model: ModelFacts, norm: ModuleFacts, window: int) -> Sequence[float]:
    """The share of unit variance that is left of the last inputs, with the weight taken off.

    It is var/(var + eps), averaged over channels: 1 where eps does not matter. Empty where the size
    of the weight is not known.
    """
    site = Site(model.name, norm.fqn)
    outputs, mode = run.at("output.rms", site), run.at("norm.training", site)
    masked = run.at("output.zero_fraction", site)
    if outputs is None or (mode is not None and not mode.last):
        return ()
    steps = outputs.last_steps(window)
    weights, biases = (_at(run, model, norm, name, steps) for name in ("weight", "bias"))
    left: list[float] = []
    for step, weight, bias in zip(steps, weights, biases, strict=True):
        out, zeros = outputs.at(step), masked.at(step) if masked else None
        # Exact zeros are no result of a normalization: a mask has put them there.
        shown = 1 - (zeros if zeros is not None and zeros < 1 else 0.0)
        if weight and bias is not None and out is not None:
            left.append((out**2 / shown - bias**2) / weight**2)
    return left


def _at(
    run: Run, model: ModelFacts, norm: ModuleFacts, name: str, steps: Sequence[int]
) -> list[float | None]:
    """The size of a layer's parameter at some steps; of one that it does not have 1 and 0."""
    fqn = _param(norm.fqn, name)
    if fqn not in _params(model):
        return [1.0 if name == "weight" else 0.0] * len(steps)
    series = run.at("param.rms", Site(model.name, fqn))
    return [series.at(step) if series else None for step in steps]
