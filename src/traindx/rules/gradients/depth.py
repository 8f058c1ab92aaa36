"""The gradient along the depth of a network, measured once for every rule that needs it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from traindx.facts import ModelFacts, ParamFacts
from traindx.rules.order import network_order
from traindx.run import Run

LEAST = 2.0**-149
"""The least positive float32: what an exact zero counts as on a logarithmic scale."""
MIN_LAYERS = 4
"""Weight matrices of one kind that it takes to speak of a slope."""
LEAST_SLOPE = 0.05
"""Decades per layer from which on a gradient falls with the depth and not at a single layer."""


@dataclass(frozen=True, slots=True)
class DepthProfile:
    """Gradient RMS of a model's weight matrices of one module kind, in network order.

    Attributes:
        model: The model's name.
        kind: Class name of the modules.
        step: The step they were measured at.
        params: The matrices, the first layer first.
        rms: Their gradients' RMS, exact zeros as `LEAST`.
    """

    model: str
    kind: str
    step: int
    params: tuple[ParamFacts, ...]
    rms: tuple[float, ...]

    @property
    def is_finite(self) -> bool:
        """Whether every gradient is; nothing can be said of the depth otherwise."""
        return all(math.isfinite(value) for value in self.rms)

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


def vanishing(
    run: Run,
    model: ModelFacts,
    *,
    slope: float = 0.3,
    ratio: float = 1e-3,
    vanished: float = 1e-6,
    loss: float = 0.05,
) -> Iterator[DepthProfile]:
    """The profiles in which the gradient vanishes towards the first layer, at the last step.

    Args:
        run: The run.
        model: One of its models.
        slope: Least decades per layer.
        ratio: Ratio of the first layer's gradient to the last's from which on, at such a slope,
            it vanishes.
        vanished: Ratio from which on any slope over `LEAST_SLOPE` is enough.
        loss: Fraction of the first loss at or under which a model has learned all the same.
    """
    if run.loss_fraction(model.name) <= loss:
        return
    for profile in depth_profiles(run, model):
        steep = profile.ratio < ratio and profile.slope >= slope
        if steep or (profile.ratio < vanished and profile.slope > LEAST_SLOPE):
            yield profile


def depth_profiles(run: Run, model: ModelFacts) -> Iterator[DepthProfile]:
    """The model's profiles that are finite, one a module kind, of what was measured last."""
    return (profile for profile in _profiles(run, model) if profile.is_finite)


def _profiles(run: Run, model: ModelFacts) -> Iterator[DepthProfile]:
    latest = {s.site.fqn: s for s in run.series("grad.rms", model=model.name) if len(s)}
    for kind, params in matrices(model).items():
        measured = [param for param in params if param.fqn in latest]
        step = max((latest[param.fqn].step for param in measured), default=-1)
        params = tuple(param for param in measured if latest[param.fqn].step == step)
        rms = tuple(max(latest[param.fqn].last, LEAST) for param in params)
        if len(params) >= MIN_LAYERS:
            yield DepthProfile(model.name, kind, step, params, rms)


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


def no_depth(run: Run) -> str:
    """Why depth cannot be judged: too few layers, or no gradient that is finite."""
    return _too_shallow(run) or _not_finite(run)


def _not_finite(run: Run) -> str:
    profiles = [profile for model in run.models.values() for profile in _profiles(run, model)]
    if not profiles or any(profile.is_finite for profile in profiles):
        return ""
    models = dict.fromkeys(profile.model for profile in profiles)
    return f"the gradients of {' and '.join(models)} are not finite"


def _too_shallow(run: Run) -> str:
    groups = (group for model in run.models.values() for group in matrices(model).values())
    if any(len(group) >= MIN_LAYERS for group in groups):
        return ""
    return f"needs at least {MIN_LAYERS} trainable weight matrices of one kind in a model"
