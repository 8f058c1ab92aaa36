"""Runs written by hand, item by item, as capture would write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from traindx.facts import Facts, Json, ModelFacts, ModuleFacts, ParamFacts, PathFacts
from traindx.findings import Finding, Verdict
from traindx.records import (
    Description,
    Event,
    EventKind,
    Item,
    Point,
    Record,
    Scalar,
    Site,
    TensorStats,
)
from traindx.rules.catalog import find
from traindx.rules.engine import judge


class Recording:
    """The items of one run, in the order they were written."""

    def __init__(self, *facts: Facts) -> None:
        self.items: list[Item] = [Description(0, each) for each in facts]

    def scalar(self, step: int, quantity: str, value: float, fqn: str = "", model: str = "net"):
        self.items.append(Scalar(step, quantity, float(value), Site(model, fqn)))

    def grad(self, step: int, fqn: str, rms: float, model: str = "net"):
        stats = TensorStats(count=100, mean=0.0, m2=100 * rms * rms, min=-rms, max=rms)
        self.items.append(Record(step, Site(model, fqn), Point.GRAD, stats))

    def described(self, step: int, facts: Facts):
        self.items.append(Description(step, facts))

    def measured(self, step: int):
        self.items.append(Event(step, EventKind.MEASURED))

    def event(self, step: int, kind: EventKind, model: str = "", **detail: Json):
        self.items.append(Event(step, kind, Site(model) if model else Site(""), detail))

    def evaluated(self, step: int, model: str = "net", *, training: bool = False):
        self.event(step, EventKind.EVALUATION, model, forwards=5, training=training)

    def ended(self, steps: int):
        self.event(steps - 1, EventKind.ENDED, exit_code=0, steps=steps)

    def verdict(self, *codes: str, options: Mapping[str, Mapping[str, float]] | None = None):
        return judge(self.items, [find(code) for code in codes], options)

    def findings(self, *codes: str, **options: float) -> tuple[Finding, ...]:
        verdict = self.verdict(*codes, options={codes[0]: options})
        assert not failures(verdict), failures(verdict)
        return verdict.findings


def failures(verdict: Verdict) -> list[str]:
    """The rules that raised, which a test for silence must not take for silence."""
    return [it.reason for it in verdict.not_evaluated if it.reason.startswith("the rule failed")]


def evaluated(verdict: Verdict, code: str) -> bool:
    return code in verdict.evaluated


def linear(fqn: str, order: int | None, *, calls: int = 1) -> ModuleFacts:
    return ModuleFacts(fqn, "Linear", order, calls if order is not None else 0)


def weight(
    module: str,
    *,
    trainable: bool = True,
    held: bool = True,
    path: PathFacts | None = None,
    name: str = "weight",
) -> ParamFacts:
    shape = (10, 10) if name == "weight" else (10,)
    return ParamFacts(f"{module}.{name}", shape, "float32", trainable, ("SGD",) * held, path)


def chain(depth: int, paths: list[PathFacts] | None = None) -> ModelFacts:
    """A model of `depth` linear layers "0", "1", … called in this order."""
    names = [str(i) for i in range(depth)]
    params = [
        weight(name, path=path) for name, path in zip(names, paths or [None] * depth, strict=True)
    ]
    modules = [linear(name, i + 1) for i, name in enumerate(names)]
    return ModelFacts(
        "net", "Sequential", (ModuleFacts("", "Sequential", 0, 1), *modules), (*params,)
    )


def batchnorm_net(*norms: str, momentum: float | None = 0.1, affine_frozen: bool = False):
    """A model of the named BatchNorm layers, called in this order."""
    options: dict[str, Json] = {
        "eps": 1e-5,
        "momentum": momentum,
        "affine": True,
        "num_features": 10,
        "track_running_stats": True,
        "num_batches_tracked": 0,
    }
    modules = [ModuleFacts(fqn, "BatchNorm2d", i + 1, 1, options) for i, fqn in enumerate(norms)]
    params = [replace(weight(fqn, trainable=not affine_frozen), shape=(10,)) for fqn in norms]
    return ModelFacts("net", "ConvNet", (ModuleFacts("", "ConvNet", 0, 1), *modules), (*params,))
