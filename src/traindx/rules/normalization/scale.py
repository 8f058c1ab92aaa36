"""Weights and outputs of normalizations as the rules see them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from traindx.facts import ModelFacts, ModuleFacts
from traindx.ledger import NEVER
from traindx.records import Site
from traindx.rules.order import of_facts
from traindx.run import Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]

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
    weighted: Flags
    biased: Flags


@of_facts
def _places(model: ModelFacts) -> _Places:
    import numpy as np

    fqns = [norm.fqn for norm in normalizations(model)]
    named = [[_param(fqn, name) for fqn in fqns] for name in ("weight", "bias")]
    weights, biases = (tuple(Site(model.name, name) for name in names) for names in named)
    has = (np.array([name in _params(model) for name in names], np.bool_) for names in named)
    return _Places(tuple(Site(model.name, fqn) for fqn in fqns), weights, biases, *has)


def doubtful(run: Run, model: ModelFacts, share: float) -> list[ModuleFacts]:
    """The normalizations of whose unit variance not clearly `share` was left the last time."""
    import numpy as np

    at = _places(model)
    if not at.outputs:
        return []
    outputs = run.newest("output.rms", at.outputs)
    zeros = run.newest("output.zero_fraction", at.outputs).values
    weights, biases = (run.newest("param.rms", sites) for sites in (at.weights, at.biases))
    with np.errstate(all="ignore"):
        size = outputs.values**2 / np.where(zeros < 1, 1 - zeros, 1.0)
        scaled = np.where(at.weighted, weights.values, 1.0) ** 2
        left = size - np.where(at.biased, biases.values, 0.0) ** 2
        # What is close to the limit, or cannot be told exactly, is looked at one by one.
        clear = (left > 1.001 * share * scaled) & (size < 1e9 * scaled)
    for has, params in ((at.weighted, weights), (at.biased, biases)):
        clear &= ~has | (params.steps == outputs.steps)
    clear |= outputs.steps == NEVER
    return [] if clear.all() else [*compress(normalizations(model), ~clear)]


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
