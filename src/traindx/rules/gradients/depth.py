"""The gradient along the depth of a network, measured once for every rule that needs it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.facts import ModelFacts, ParamFacts
from traindx.rules.order import network_order
from traindx.run import Run

LEAST = 2.0**-149
"""The least positive float32: what an exact zero counts as on a logarithmic scale."""
MIN_LAYERS = 4
"""Weight matrices of one kind that it takes to speak of a slope."""


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
    def ratio(self) -> float:
        """The first layer's over the last's."""
        return self.rms[0] / self.rms[-1]

    @property
    def slope(self) -> float:
        """Decades per layer from the first to the last, by least squares."""
        centre = (len(self.rms) - 1) / 2
        rises = ((i - centre) * math.log10(rms) for i, rms in enumerate(self.rms))
        return sum(rises) / sum((i - centre) ** 2 for i in range(len(self.rms)))


def vanishing(
    run: Run, model: ModelFacts, *, slope: float = 0.3, ratio: float = 1e-3, loss: float = 0.05
) -> Iterator[DepthProfile]:
    """The profiles in which the gradient vanishes towards the first layer, at the last step.

    Args:
        run: The run.
        model: One of its models.
        slope: Least decades per layer.
        ratio: Largest ratio of the first layer's gradient to the last's.
        loss: Fraction of the first loss at or under which a model has learned all the same.
    """
    if run.loss_fraction(model.name) <= loss:
        return
    for profile in depth_profiles(run, model):
        if profile.ratio < ratio and profile.slope >= slope:
            yield profile


def depth_profiles(run: Run, model: ModelFacts) -> Iterator[DepthProfile]:
    """The model's profiles, one a module kind, of what was measured last."""
    latest = {s.site.fqn: s for s in run.series("grad.rms", model=model.name) if len(s)}
    for kind, params in matrices(model).items():
        measured = [param for param in params if param.fqn in latest]
        step = max((latest[param.fqn].step for param in measured), default=-1)
        params = tuple(param for param in measured if latest[param.fqn].step == step)
        rms = tuple(max(latest[param.fqn].last, LEAST) for param in params)
        if len(params) >= MIN_LAYERS and all(math.isfinite(value) for value in rms):
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


def too_shallow(run: Run) -> str:
    """Why depth cannot be judged: no model has enough matrices of one kind."""
    groups = (group for model in run.models.values() for group in matrices(model).values())
    if any(len(group) >= MIN_LAYERS for group in groups):
        return ""
    return f"needs at least {MIN_LAYERS} trainable weight matrices of one kind in a model"
