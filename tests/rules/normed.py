"""Runs of networks with normalizations, written by hand."""

from __future__ import annotations

from tests.rules.recording import Recording, linear, weight
from traindx.facts import Json, ModelFacts, ModuleFacts, OptimizerFacts, ParamFacts
from traindx.records import Point, Record, Site, TensorStats


def layernorm_net(*norms: str, affine: bool = True) -> ModelFacts:
    """A model of a linear layer and the named LayerNorms, called in this order."""
    options: dict[str, Json] = {"eps": 1e-5, "normalized_shape": [10]}
    modules = [ModuleFacts(fqn, "LayerNorm", i + 2, 1, options) for i, fqn in enumerate(norms)]
    params = [
        ParamFacts(f"{fqn}.{name}", (10,), "float32", True, ("SGD",))
        for fqn in norms
        for name in ("weight", "bias")
        if affine
    ]
    return ModelFacts(
        "net",
        "Net",
        (ModuleFacts("", "Net", 0, 1), linear("lift", 1), *modules),
        (weight("lift"), *params),
    )


def sgd(weight_decay: float) -> OptimizerFacts:
    return OptimizerFacts("SGD", "SGD", ({"lr": 0.1, "weight_decay": weight_decay},), 5)


def output(recording: Recording, step: int, fqn: str, rms: float, zeros: int = 0) -> None:
    """An output of this size, of which so many of 100 elements are exactly 0."""
    square = 100 * rms * rms
    stats = TensorStats(100, 0.0, square, -rms, rms, sampled=100, zeros=zeros)
    recording.items.append(Record(step, Site("net", fqn), Point.OUTPUT, stats))
