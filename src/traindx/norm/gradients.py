"""Closed-form gradients of every normalization, and the gradients of those gradients.

With n the normalized elements, y = n w + b. For seeds h, k, l of the gradients by x, w and b,
  <h, dx> + <k, dw> + <l, db>,  where dx = pull(dy w), dw = sum dy n, db = sum dy,
is differentiated by dy, x and w. This is what `torch.autograd.grad(..., create_graph=True)` and a
second `grad` give.
"""

from __future__ import annotations

from dataclasses import dataclass

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm import spectral, window
from traindx.norm.affine import gathered_parameter, parameter, weighted
from traindx.norm.arrays import INPUT, Array, ArrayLike, read
from traindx.norm.passes import (
    Pass,
    RunningStats,
    constant_pass,
    passes_unchanged,
    read_mask,
    training_pass,
)
from traindx.norm.scaling import Sums
from traindx.norm.spec import NormSpec
from traindx.norm.spectral import PowerVectors


@dataclass(frozen=True, slots=True)
class Gradients:
    """Gradients by the input, the weight and the bias; None where the layer has no such thing."""

    x: Array
    weight: Array | None = None
    bias: Array | None = None


@dataclass(frozen=True, slots=True)
class DoubleGradients:
    """Gradients by the output's gradient, the input and the weight."""

    dy: Array
    x: Array
    weight: Array | None = None


def backward(
    spec: NormSpec,
    dy: ArrayLike,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    running: RunningStats | PowerVectors | None = None,
    mask: ArrayLike | None = None,
    training: bool = True,
) -> Gradients:
    """The gradients for a gradient `dy` of the output.

    Args:
        spec: The layer.
        dy: Gradient by the output, of its shape.
        x: What the forward was given.
        weight: What the forward was given.
        running: As in `forward`; in evaluation the statistics themselves. For SpectralNorm u and v
            as the forward used them: they are constants to the gradient.
        mask: As in `forward`.
        training: Whether the forward was `forward` or `evaluate`.
    """
    values = read(INPUT, x)
    given = read("`dy`", dy, like=values)
    if 0 in values.shape:
        return _of_nothing(spec, given)
    if training and passes_unchanged(spec, values):
        return Gradients(given)
    if spec.window is not None:
        return Gradients(window.pull(spec, spec.window, values, given))
    if isinstance(running, PowerVectors):
        return Gradients(spectral.taken(spec, values, running).pull(given))
    taken = _pass(spec, values, running, mask, training)
    return of_pass(spec, taken, given, weight)


def of_pass(
    spec: NormSpec, taken: Pass, dy: Array, weight: ArrayLike | None, sums: Sums | None = None
) -> Gradients:
    """The gradients of one pass; `sums` are those of whole sets, where `dy` is a part of them."""
    dx = taken.pull(weighted(spec, dy, weight), sums)
    if spec.affine is None:
        return Gradients(dx)
    dweight = gathered_parameter(spec, "weight", dy * taken.output())
    return Gradients(dx, dweight, gathered_parameter(spec, "bias", dy))


def double_backward(
    spec: NormSpec,
    seeds: Gradients,
    dy: ArrayLike,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    running: RunningStats | PowerVectors | None = None,
    mask: ArrayLike | None = None,
    training: bool = True,
) -> DoubleGradients:
    """The gradients of <seeds.x, dx> + <seeds.weight, dweight> + <seeds.bias, dbias>.

    `dx`, `dweight`, `dbias` are what `backward` gives for the other arguments.
    """
    values = read(INPUT, x)
    given, h = read("`dy`", dy, like=values), read("`seeds.x`", seeds.x, like=values)
    if 0 in values.shape or (training and passes_unchanged(spec, values)):
        return DoubleGradients(h, 0 * values)
    if spec.window is not None:
        pushed = window.push(spec, spec.window, values, h)
        return DoubleGradients(pushed, window.bend(spec, spec.window, values, given, h))
    if isinstance(running, PowerVectors):
        taken = spectral.taken(spec, values, running)
        return DoubleGradients(taken.push(given, h), taken.bend(given, h))
    taken = _pass(spec, values, running, mask, training)
    k = None if seeds.weight is None else parameter(spec, "weight", seeds.weight, values)
    return double_of_pass(spec, taken, Gradients(h, k, seeds.bias), given, weight)


def double_of_pass(
    spec: NormSpec,
    taken: Pass,
    seeds: Gradients,
    dy: Array,
    weight: ArrayLike | None,
    sums: tuple[Sums, Sums] | None = None,
) -> DoubleGradients:
    """The double gradients of one pass; a weight seed is shaped to act on every element.

    `sums` are the inner products of whole sets, with the gradient and with the weight's seed.
    """
    by_dy, by_weight = sums or (None, None)
    g = weighted(spec, dy, weight)
    pushed = taken.push(g, seeds.x, by_dy)
    ddy, dx = weighted(spec, pushed, weight), taken.bend(g, seeds.x, by_dy)
    if seeds.weight is not None:
        ddy = ddy + seeds.weight * taken.output()
        dx = dx + taken.pull(seeds.weight * dy, by_weight)
    if seeds.bias is not None:
        ddy = ddy + parameter(spec, "bias", seeds.bias, dy)
    if spec.affine is None:
        return DoubleGradients(ddy, dx)
    return DoubleGradients(ddy, dx, gathered_parameter(spec, "weight", pushed * dy))


def _of_nothing(spec: NormSpec, dy: Array) -> Gradients:
    """The gradients of an empty batch: a weight and a bias that nothing passed receive 0."""
    if spec.affine is None:
        return Gradients(dy)
    nothing = [gathered_parameter(spec, name, dy) for name in ("weight", "bias")]
    return Gradients(dy, *nothing)


def _pass(
    spec: NormSpec,
    values: Array,
    running: RunningStats | None,
    mask: ArrayLike | None,
    training: bool,
) -> Pass:
    if training:
        return training_pass(spec, values, running, read_mask(values, mask))
    if running is None:
        raise ArgumentError(
            say(
                "{kind} in evaluation needs its running statistics; got none. Pass `running`.",
                kind=spec.kind,
            )
        )
    return constant_pass(spec, values, running)
