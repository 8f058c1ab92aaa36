"""The activation of Filter Response Normalization: the greater of the element and a threshold."""

from __future__ import annotations

from traindx.norm.arrays import INPUT, Array, ArrayLike, gathered, namespace, read, spread
from traindx.norm.spec import Axes


def tlu(y: ArrayLike, threshold: ArrayLike, *, axis: int = 1) -> Array:
    """max(y, threshold), with one threshold for each index of `axis` (Singh and Krishnan 2020)."""
    values = read(INPUT, y)
    least = spread("threshold", threshold, values, Axes((axis,)))
    return namespace(values).where(values < least, least, values)


def tlu_backward(
    dz: ArrayLike, y: ArrayLike, threshold: ArrayLike, *, axis: int = 1
) -> tuple[Array, Array]:
    """The gradients by `y` and by the threshold for a gradient `dz` of the output."""
    values = read(INPUT, y)
    given, along = read("`dz`", dz, like=values), Axes((axis,))
    below = values < spread("threshold", threshold, values, along)
    xp = namespace(values)
    return xp.where(below, 0.0, given), gathered(xp.where(below, given, 0.0), along)
