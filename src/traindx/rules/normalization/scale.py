"""Weights and outputs of normalizations as the rules see them."""

from __future__ import annotations

from collections.abc import Sequence

from traindx.facts import ModelFacts, ModuleFacts
from traindx.records import Site
from traindx.rules.order import of_facts
from traindx.run import Run, Series

_SIZES = ("normalized_shape", "num_groups", "num_features")


@of_facts
def normalizations(model: ModelFacts) -> list[ModuleFacts]:
    """The layers that normalize, in the order of calls."""
    return [
        module
        for module in model.in_network_order()
        if "eps" in module.options and any(size in module.options for size in _SIZES)
    ]


def weight_of(run: Run, model: ModelFacts, norm: ModuleFacts) -> Series | None:
    """The size of a layer's weight over the steps, if an optimizer trains it."""
    return run.at("param.rms", Site(model.name, f"{norm.fqn}.weight".removeprefix(".")))


def has_weight(model: ModelFacts, norm: ModuleFacts) -> bool:
    """Whether it multiplies by a weight of its own."""
    return f"{norm.fqn}.weight".removeprefix(".") in _params(model)


@of_facts
def _params(model: ModelFacts) -> frozenset[str]:
    return frozenset(param.fqn for param in model.params)


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
    fqn = f"{norm.fqn}.{name}".removeprefix(".")
    if fqn not in _params(model):
        return [1.0 if name == "weight" else 0.0] * len(steps)
    series = run.at("param.rms", Site(model.name, fqn))
    return [series.at(step) if series else None for step in steps]
