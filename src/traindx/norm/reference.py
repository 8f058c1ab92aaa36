"""Forward, running update and evaluation of every normalization, in float64.

Shapes: `B` batch, `C` channels; `R` the reduced axes, `K` the kept ones, so an input is [K, R] in
some order of axes. BatchNorm on [B, C, ...] keeps C; LayerNorm reduces the last axes.
Written against the array API standard: what comes as an array of torch is answered as one.
"""

from __future__ import annotations

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm import moments, spectral, window
from traindx.norm.affine import affine
from traindx.norm.arrays import INPUT, Array, ArrayLike, read
from traindx.norm.gradients import DoubleGradients, Gradients, backward, double_backward
from traindx.norm.moments import Statistics
from traindx.norm.passes import (
    RunningStats,
    constant_pass,
    passes_unchanged,
    read_mask,
    training_pass,
)
from traindx.norm.running import fresh, updated
from traindx.norm.spec import NormSpec
from traindx.norm.spectral import PowerVectors

__all__ = [
    "Array",
    "ArrayLike",
    "DoubleGradients",
    "Gradients",
    "PowerVectors",
    "RunningStats",
    "Statistics",
    "backward",
    "double_backward",
    "evaluate",
    "forward",
    "fresh",
    "power_iterated",
    "statistics",
    "updated",
]


def statistics(spec: NormSpec, x: ArrayLike, *, mask: ArrayLike | None = None) -> Statistics:
    """Mean and squared deviations of `x` [K, R], in two passes; the reduced axes keep extent 1."""
    values = read(INPUT, x)
    return moments.statistics(spec, values, read_mask(values, mask))


def forward(
    spec: NormSpec,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    running: RunningStats | PowerVectors | None = None,
    mask: ArrayLike | None = None,
) -> Array:
    """The output in training: `x` [K, R] normalized by its own statistics.

    Args:
        spec: The layer.
        x: The input; for WeightNorm its direction v, for SpectralNorm the weight.
        weight: One value for each index of the affine axes; for WeightNorm its magnitude g.
        bias: As `weight`.
        running: What Batch Renorm corrects toward; for SpectralNorm its u and v, which are moved
            before they are used (`power_iterated`).
        mask: True where an element counts, broadcast against `x`.
    """
    values = read(INPUT, x)
    if passes_unchanged(spec, values):
        return values
    if spec.window is not None:
        return window.forward(spec, spec.window, values)
    if isinstance(running, PowerVectors) or spec.spectral is not None:
        return spectral.forward(spec, values, power_iterated(spec, running, values))
    taken = training_pass(spec, values, running, read_mask(values, mask))
    return affine(spec, taken.output(), weight, bias)


def evaluate(
    spec: NormSpec,
    running: RunningStats | PowerVectors,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
) -> Array:
    """The output in evaluation: `x` [K, R] by the running statistics, or u and v, as they are."""
    values = read(INPUT, x)
    if isinstance(running, PowerVectors):
        return spectral.forward(spec, values, running)
    if 0 in values.shape:
        return values
    return affine(spec, constant_pass(spec, values, running).output(), weight, bias)


def power_iterated(
    spec: NormSpec, vectors: RunningStats | PowerVectors | None, weight: ArrayLike
) -> PowerVectors:
    """The vectors of SpectralNorm after the power iterations of one training forward."""
    if not isinstance(vectors, PowerVectors):
        raise ArgumentError(
            say(
                "{kind} needs its power vectors; got {given}. Pass PowerVectors(u, v).",
                kind=spec.kind,
                given=type(vectors).__name__,
            )
        )
    return spectral.moved(spec, vectors, read(say("the weight"), weight))
