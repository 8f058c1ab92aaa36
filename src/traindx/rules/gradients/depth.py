"""The gradient along the depth of a network, measured once for every rule that needs it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress, pairwise, takewhile

from traindx.facts import ModelFacts, ParamFacts
from traindx.findings import first_layers
from traindx.ledger import NEVER, Newest
from traindx.messages import listed, say
from traindx.records import Site
from traindx.rules.order import network_order, of_facts
from traindx.run import Run

LEAST = 2.0**-149
"""The least positive float32: what an exact zero counts as on a logarithmic scale."""
MIN_LAYERS = 4
"""Weight matrices of one kind that it takes to speak of a slope."""
LEAST_SLOPE = 0.05
"""Decades per layer from which on a gradient falls with the depth and not at a single layer."""
STEEP = 0.3
"""Decades per layer from which on it falls steeply."""
VANISHING = 1e-3
"""Ratio of the first layer's gradient to the last's below which a steep fall makes it vanish."""
VANISHED = 1e-6
"""Ratio below which any slope over `LEAST_SLOPE` is enough."""
_ROUGH = 1e-6
"""By how much a rough slope is off at most."""
LEARNED = 0.05
"""Fraction of the first loss at or under which a model has learned all the same."""


@dataclass(frozen=True, slots=True)
class DepthProfile:
    """Gradient RMS of a model's weight matrices of one module kind, in network order.

    Attributes:
        model: The model's name.
        kind: Class name of the modules.
        step: The step they were measured at.
        params: The matrices, the first layer first.
        rms: Their gradients' RMS, exact zeros as `LEAST`.
        of_outputs: Whether it is the gradients of what their modules put out instead.
    """

    model: str
    kind: str
    step: int
    params: tuple[ParamFacts, ...]
    rms: tuple[float, ...]
    of_outputs: bool = False

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that own the matrices."""
        return first_layers(param.module for param in self.params)

    @property
    def is_finite(self) -> bool:
        """Whether every gradient is; nothing can be said of the depth otherwise."""
        return all(map(math.isfinite, self.rms))

    @property
    def ratio(self) -> float:
        """The first layer's over the last's."""
        return self.rms[0] / self.rms[-1]

    @property
    def slope(self) -> float:
        """Decades per layer from the first to the last, by least squares.

        Layers in front of an exact zero can only be zero as well, and say nothing of the slope.
        """
        zeros = sum(1 for _ in takewhile(lambda rms: rms == LEAST, self.rms))
        fitted = self.rms[min(max(zeros - 1, 0), len(self.rms) - 2) :]
        centre = (len(fitted) - 1) / 2
        rises = ((i - centre) * math.log10(rms) for i, rms in enumerate(fitted))
        return sum(rises) / sum((i - centre) ** 2 for i in range(len(fitted)))

    @property
    def rough_slope(self) -> float:
        """The slope in a tenth of the time, but for rounding; NaN if a gradient is not finite."""
        import numpy as np

        rms = np.array(self.rms)
        start = min(max(int((rms != LEAST).argmax()) - 1, 0), len(rms) - 2)
        with np.errstate(all="ignore"):
            decades = np.log10(rms[start:])
            away = np.arange(len(decades)) - (len(decades) - 1) / 2
            return float(away @ decades / (away @ away))


def vanishing(
    run: Run,
    model: ModelFacts,
    *,
    slope: float = STEEP,
    ratio: float = VANISHING,
    vanished: float = VANISHED,
    loss: float = LEARNED,
) -> Iterator[DepthProfile]:
    """The profiles in which the gradient vanishes towards the first layer, at the last step."""
    if run.loss_fraction(model.name) <= loss:
        return
    for profile in _profiles(run, model, below=max(ratio, vanished)):
        if not profile.is_finite or profile.rough_slope < min(slope, LEAST_SLOPE) - _ROUGH:
            continue
        steep = profile.ratio < ratio and profile.slope >= slope
        if steep or (profile.ratio < vanished and profile.slope > LEAST_SLOPE):
            yield profile


EXPLODES = 70.0
"""Ratio of the first layer's gradient to the last's from which on it explodes with the depth."""


def explodes(profile: DepthProfile, ratio: float = EXPLODES) -> bool:
    """Whether the gradient grows towards the first layer, over the layers and not at one of them.

    At most two thirds of its decades may be gained between two neighbours.
    """
    if profile.ratio <= ratio or profile.rough_slope > _ROUGH - LEAST_SLOPE:
        return False
    if not profile.is_finite or profile.slope >= -LEAST_SLOPE:
        return False
    gains = [math.log10(a / b) for a, b in pairwise(profile.rms)]
    return 3 * max(gains) <= 2 * math.log10(profile.ratio)


def profiles_at(
    run: Run, model: ModelFacts, step: int, above: float = 0.0
) -> Iterator[DepthProfile]:
    """The model's profiles at one step: of weights and of outputs, of each module kind.

    Those whose ratio is `above` or less may be left out.

    Where a signal grows from layer to layer as its gradient does on the way back, the gradients of
    the weights, products of the two, are all of a size; those of the outputs tell the growth.
    """
    for line in _lines(model):
        for of_outputs in (False, True):
            params, rms = _seen_at(run, line, step, above, of_outputs=of_outputs)
            if len(params) >= MIN_LAYERS:
                yield DepthProfile(model.name, line.kind, step, params, rms, of_outputs)


def _seen_at(
    run: Run, line: _Line, step: int, above: float, *, of_outputs: bool
) -> tuple[tuple[ParamFacts, ...], tuple[float, ...]]:
    """The gradients that were measured at a step, and of which weights."""
    quantity = "output_grad.rms" if of_outputs else "grad.rms"
    sites = line.outputs if of_outputs else line.weights
    newest = run.newest(quantity, sites)
    if (newest.steps <= step).all():
        if _ratio(newest, step) <= above:
            return (), ()
        return _at_once(line, newest, step)
    series = [run.at(quantity, site) for site in sites]
    rms = [(p, s.at(step)) for p, s in zip(line.params, series, strict=True) if s]
    seen = [(param, max(value, LEAST)) for param, value in rms if value is not None]
    return tuple(param for param, _ in seen), tuple(value for _, value in seen)


def _at_once(
    line: _Line, newest: Newest, step: int
) -> tuple[tuple[ParamFacts, ...], tuple[float, ...]]:
    """What was measured last, as far as that was at one step."""
    import numpy as np

    there = newest.steps == step
    rms = tuple(np.maximum(newest.values[there], LEAST).tolist())
    if len(rms) == len(line.params):
        return line.params, rms
    return tuple(compress(line.params, there.tolist())), rms


def _profiles(run: Run, model: ModelFacts, below: float | None = None) -> Iterator[DepthProfile]:
    """One a module kind of what was measured last, all or those with a ratio below a bound."""
    for line in _lines(model):
        newest = run.newest("grad.rms", line.weights)
        step = int(newest.steps.max())
        if step == NEVER or (below is not None and not _ratio(newest, step) < below):
            continue
        params, rms = _at_once(line, newest, step)
        if len(rms) >= MIN_LAYERS:
            yield DepthProfile(model.name, line.kind, step, params, rms)


def _ratio(newest: Newest, step: int) -> float:
    """The first gradient that was measured at a step over the last one."""
    there = newest.steps == step
    first, last = int(there.argmax()), len(there) - 1 - int(there[::-1].argmax())
    return max(float(newest.values[first]), LEAST) / max(float(newest.values[last]), LEAST)


@dataclass(frozen=True, slots=True)
class _Line:
    """Weight matrices of one module kind in network order, and where their gradients are."""

    kind: str
    params: tuple[ParamFacts, ...]
    weights: tuple[Site, ...]
    outputs: tuple[Site, ...]


@of_facts
def _lines(model: ModelFacts) -> list[_Line]:
    return [
        _Line(
            kind,
            tuple(params),
            tuple(Site(model.name, param.fqn) for param in params),
            tuple(Site(model.name, param.module) for param in params),
        )
        for kind, params in matrices(model).items()
    ]


@of_facts
def matrices(model: ModelFacts) -> dict[str, list[ParamFacts]]:
    """Trainable weight matrices in network order, by kind of their module.

    Embeddings are left out: they stand side by side, and a batch touches few of their rows.
    """
    kinds = {module.fqn: module.kind for module in model.modules}
    place = network_order(model)
    found: dict[str, list[ParamFacts]] = {}
    for param in sorted(model.params, key=lambda param: place.get(param.module, len(place))):
        kind = kinds.get(param.module, "")
        if kind and param.trainable and len(param.shape) >= 2 and "Embedding" not in kind:
            found.setdefault(kind, []).append(param)
    return found


@of_facts
def _is_deep(model: ModelFacts) -> bool:
    return any(len(group) >= MIN_LAYERS for group in matrices(model).values())


def no_depth(run: Run, other: str = "") -> str:
    """Why depth cannot be judged: too few layers, what else there is, no finite gradient."""
    return _too_shallow(run) or other or _not_finite(run)


def _not_finite(run: Run) -> str:
    models: dict[str, None] = {}
    for profile in (profile for model in run.models.values() for profile in _profiles(run, model)):
        if profile.is_finite:
            return ""
        models[profile.model] = None
    if not models:
        return ""
    return say("the gradients of {models} are not finite", models=listed(models))


def _too_shallow(run: Run) -> str:
    if any(_is_deep(model) for model in run.models.values()):
        return ""
    return say(
        "needs at least {layers} trainable weight matrices of one kind in a model",
        layers=MIN_LAYERS,
    )
