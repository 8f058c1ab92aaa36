"""A layer in the input's own type: what accumulation, rounding and the way of the variance change.

The reference answers what is right; this answers what a layer with such a specification computes.
What overflows or cancels does so here too, and nothing is refused for not being finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm import window
from traindx.norm.affine import per_channel
from traindx.norm.arrays import Array, ArrayLike, namespace
from traindx.norm.choices import Accumulation, Cast
from traindx.norm.moments import layout, moments
from traindx.norm.scaling import by_batch
from traindx.norm.spec import Axes, NormSpec


def emulate(
    spec: NormSpec, x: ArrayLike, weight: Array | None = None, bias: Array | None = None
) -> Array:
    """The output in training of `x`, in its type, as the specification rounds.

    The arrays must be of one library, and `x` of a real floating type. Weight and bias keep their
    own type: where the normalized value is rounded first, the product has the wider of both.
    """
    xp: Any = namespace(x)
    wide = _accumulated(spec, xp, x.dtype)
    with np.errstate(all="ignore"):
        normalized = _normalized(spec, xp.astype(x, wide))
        if spec.cast is Cast.BEFORE_AFFINE:
            return _affine(spec, xp, xp.astype(normalized, x.dtype), weight, bias)
        parameters = [None if p is None else xp.astype(p, wide) for p in (weight, bias)]
        return xp.astype(_affine(spec, xp, normalized, *parameters), x.dtype)


def _normalized(spec: NormSpec, values: Array) -> Array:
    if spec.window is not None:
        return window.forward(spec, spec.window, values)
    if spec.spectral is not None:
        raise ArgumentError(
            say(
                "{kind} is not emulated: its u and v are state. Use `evaluate` of the reference.",
                kind=spec.kind,
            )
        )
    seen = layout(spec, values.shape)
    split = seen.split(values)
    batch = moments(spec, split, seen.reduced, passes=spec.passes)
    return seen.join(by_batch(spec, split, batch, seen.reduced).output())


def _affine(
    spec: NormSpec, xp: Any, normalized: Array, weight: Array | None, bias: Array | None
) -> Array:
    if weight is not None:
        factor = weight + spec.weight_offset if spec.weight_offset else weight
        normalized = normalized * _along(spec, xp, factor, normalized)
    return normalized if bias is None else normalized + _along(spec, xp, bias, normalized)


def _along(spec: NormSpec, xp: Any, values: Array, like: Array) -> Array:
    """A parameter shaped to broadcast, in its own type."""
    axes = (spec.affine or Axes(())).of(like.ndim)
    if spec.groups is not None and spec.groups.affine:
        values = per_channel(spec.groups, values, like.shape[spec.groups.axis])
    return xp.reshape(values, tuple(n if i in axes else 1 for i, n in enumerate(like.shape)))


def _accumulated(spec: NormSpec, xp: Any, dtype: Any) -> Any:
    if spec.accumulation is Accumulation.INPUT or dtype == xp.float64:
        return dtype
    return xp.float32
