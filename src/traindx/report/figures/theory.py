"""What the theory says of a depth profile, where it says anything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from traindx.facts import ModelFacts
from traindx.records import Point, Site
from traindx.report.layers import Layer
from traindx.run import Run
from traindx.signal.fan_in import predicted_variance

Measured = Mapping[Site, float]

_LINEAR = ("Linear", "Conv1d", "Conv2d", "Conv3d")


def outputs(
    run: Run, model: ModelFacts, order: Sequence[Layer], outputs: Measured, weights: Measured,
    given: float | None, step: int,
) -> dict[Site, float]:  # fmt: skip
    """The RMS of linear and convolution outputs by the fan-in rule.

    Each layer is taken to be given what the module called before it returned; where the number of
    elements says otherwise, nothing is predicted.

    Args:
        run: The run.
        model: The model.
        order: Its layers in network order.
        outputs: RMS of outputs at the step.
        weights: RMS of parameters at the step.
        given: RMS of what the model was given; None if it was not measured.
        step: The step.
    """
    predicted: dict[Site, float] = {}
    before: Site | None = Site(model.name)
    for layer in order:
        if layer.position is None:
            break
        rms = given if before == Site(model.name) else outputs.get(before) if before else None
        fan_in = _fan_in(layer)
        if fan_in and rms is not None and _fits(run, before, layer, step):
            value = _predicted(layer, fan_in, rms, weights)
            if value is not None:
                predicted[layer.site] = value
        before = layer.site
    return predicted


def _fan_in(layer: Layer) -> int:
    """Inputs of one unit; 0 where the rule does not apply."""
    main = layer.main_param
    shape = next((param.shape for param in layer.params if main and param.fqn == main.fqn), ())
    return math.prod(shape[1:]) if layer.kind in _LINEAR and len(shape) >= 2 else 0


def _fits(run: Run, before: Site | None, layer: Layer, step: int) -> bool:
    """Whether what came before has as many elements as a linear layer was given."""
    if layer.kind != "Linear" or before is None:
        return True
    point = Point.OUTPUT if before.fqn else Point.INPUT
    given = run.stats_at(point, before, step)
    own = run.stats_at(Point.OUTPUT, layer.site, step)
    if given is None or own is None:
        return False
    num_out, num_in = next(param.shape for param in layer.params if len(param.shape) == 2)
    return given.count * num_out == own.count * num_in


def _predicted(layer: Layer, fan_in: int, rms: float, weights: Measured) -> float | None:
    main = layer.main_param
    weight = weights.get(main) if main else None
    biases = [weights.get(Site(layer.site.model, param.fqn)) for param in layer.params
              if main and param.fqn != main.fqn]  # fmt: skip
    known = [value for value in biases if value is not None]
    if weight is None or len(known) < len(biases):
        return None
    if not all(map(math.isfinite, (weight, rms, *known))):
        return None
    signal = predicted_variance(fan_in, Fraction(weight) ** 2, Fraction(rms) ** 2)
    try:
        return math.sqrt(float(signal) + sum(value * value for value in known))
    except OverflowError:  # an exploded network; there is nothing to draw
        return None


def gradient_bounds(model: ModelFacts, order: Sequence[Layer]) -> dict[Site, float]:
    """Log10 of the bound on what arrives at each layer, behind chains of sigmoids only.

    Empty where no parameter lies behind a sigmoid with a known bound.
    """
    paths = {param.fqn: param.path for param in model.params}
    bounds: dict[Site, float] = {}
    chained = False
    for layer in order:
        path = paths.get(layer.main_param.fqn) if layer.main_param else None
        if path and path.log10_bound is not None:
            bounds[layer.site] = path.log10_bound
            chained = chained or path.sigmoids > 0
    return bounds if chained else {}
