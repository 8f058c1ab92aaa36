"""Which elements share statistics, and the statistics they share.

Shapes: `R` the reduced axes, `K` the kept ones, so an input is [K, R] in some order of axes.
Statistics keep every axis, the reduced ones with extent 1. Where an axis is cut into groups, the
input is seen with one axis more: the group's number is kept and the place in the group is reduced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm.arrays import Array, namespace, refuse_non_finite, total
from traindx.norm.choices import Estimator, GroupOrder, Passes, Scale
from traindx.norm.spec import NormSpec


@dataclass(frozen=True, slots=True)
class Layout:
    """An input's axes as a layer sees them.

    Attributes:
        shape: The shape of the input.
        seen: Its shape with the cut axis as two.
        reduced: The axes of `seen` whose elements share statistics.
        cut: The axis that is cut; None if none is.
        inner: Which of the two axes it becomes holds the place in the group: 0 or 1.
    """

    shape: tuple[int, ...]
    seen: tuple[int, ...]
    reduced: tuple[int, ...]
    cut: int | None = None
    inner: int = 0

    @property
    def count(self) -> int:
        """Elements behind each statistic."""
        return math.prod(self.seen[axis] for axis in self.reduced)

    @property
    def num_sets(self) -> int:
        """How many sets of elements there are."""
        return math.prod(n for axis, n in enumerate(self.seen) if axis not in self.reduced)

    def split(self, x: Array) -> Array:
        """`x` with the cut axis as two."""
        return x if self.cut is None else namespace(x).reshape(x, self.seen)

    def join(self, x: Array) -> Array:
        """What `split` undone gives back."""
        return x if self.cut is None else namespace(x).reshape(x, self.shape)

    def place(self, axis: int) -> int:
        """Where an axis that is not cut stands after the cut."""
        return axis if self.cut is None or axis < self.cut else axis + 1


def layout(spec: NormSpec, shape: Sequence[int]) -> Layout:
    """How `spec` sees an input of `shape`."""
    shape = tuple(shape)
    reduced = spec.reduced.of(len(shape))
    if spec.groups is None:
        return Layout(shape, shape, reduced)
    cut = spec.groups.axis % len(shape)
    parts, size = spec.groups.cut(shape[cut])
    blocked = spec.groups.order is GroupOrder.BLOCKED
    seen = (*shape[:cut], *((parts, size) if blocked else (size, parts)), *shape[cut + 1 :])
    plain = Layout(shape, seen, (), cut, int(blocked))
    inner = {cut + plain.inner}
    return Layout(
        shape,
        seen,
        tuple(sorted({plain.place(axis) for axis in reduced if axis != cut} | inner)),
        cut,
        plain.inner,
    )


@dataclass(frozen=True, slots=True)
class Statistics:
    """Mean and spread of the elements that are normalized together.

    Attributes:
        mean: [K, R with extents 1]; 0 for a layer that never takes a mean.
        m2: Sum of squared deviations from the mean, of the same shape; for a sum of magnitudes,
            that sum.
        count: Elements behind each mean; with a mask an array of the same shape.
    """

    mean: Array
    m2: Array
    count: Array | int

    def variance(self, estimator: Estimator) -> Array:
        """The variance by one estimator, shaped as the mean."""
        return self.m2 / self.divisor(estimator)

    def divisor(self, estimator: Estimator) -> Array | int:
        """What an estimator divides the squared deviations by."""
        if not isinstance(self.count, int):
            return self.count - estimator.lost
        if estimator is Estimator.UNBIASED_OR_ZERO:
            return max(self.count - 1, 1)
        if self.count <= estimator.lost:
            raise ArgumentError(
                say(
                    "An {estimator} variance needs at least {least} elements; got "
                    "{count}. Use a larger batch.",
                    estimator=estimator.value,
                    least=estimator.lost + 1,
                    count=self.count,
                )
            )
        return self.count - estimator.lost

    def merged(self, other: Statistics) -> Statistics:
        """The statistics of both sets of elements together, exact in real arithmetic."""
        if isinstance(self.count, int) and not self.count:
            return other
        if isinstance(other.count, int) and not other.count:
            return self
        count = self.count + other.count
        shift = other.mean - self.mean
        mean = self.mean + shift * (other.count / count)
        m2 = self.m2 + other.m2 + shift**2 * (self.count * (other.count / count))
        return Statistics(mean, m2, count)


def scale_of(spec: NormSpec, batch: Statistics) -> Array:
    """What the divisor is taken of: a variance, a mean square, or a sum."""
    if spec.scale is Scale.STANDARD_DEVIATION:
        return batch.variance(spec.variance)
    return batch.m2 / batch.count if spec.scale is Scale.ROOT_MEAN_SQUARE else batch.m2


def moments(
    spec: NormSpec,
    x: Array,
    axes: Sequence[int],
    mask: Array | None = None,
    passes: Passes = Passes.TWO,
) -> Statistics:
    """The statistics of `x` as seen by a `Layout`, over `axes`, in the type of `x`.

    Not checked: what overflows is infinite. An empty set has mean and spread 0 and count 0. How a
    specification takes the variance is not asked: only an emulation gives that as `passes`.
    """
    xp, count = namespace(x), _count(spec, x, axes, mask)
    if isinstance(count, int) and not count:
        nothing = total(x, axes)
        return Statistics(nothing, nothing, 0)
    if mask is not None:
        x = xp.where(mask, x, 0.0)
    if spec.scale is Scale.SUM_OF_MAGNITUDES:
        magnitudes = total(xp.abs(x), axes)
        return Statistics(xp.zeros_like(magnitudes), magnitudes, count)
    if spec.scale is not Scale.STANDARD_DEVIATION and not spec.centered:
        squares = total(x**2, axes)
        return Statistics(xp.zeros_like(squares), squares, count)
    mean = _mean(x, axes) if mask is None else total(x, axes) / count
    if passes is not Passes.TWO:
        m2 = count * (total(x**2, axes) / count - mean**2)
        m2 = xp.where(m2 < 0, 0.0, m2) if passes is Passes.ONE_CLIPPED else m2
        return Statistics(mean, m2, count)
    deviations = x - mean
    if mask is not None:
        deviations = xp.where(mask, deviations, 0.0)
    return Statistics(mean, total(deviations**2, axes), count)


def statistics(spec: NormSpec, values: Array, mask: Array | None = None) -> Statistics:
    """Statistics of `values` [K, R] in float64, in two passes, refused if they overflow.

    The deviations are taken from the mean and not as E[x^2] - E[x]^2, which cancels when the mean
    is large.
    """
    seen = layout(spec, values.shape)
    if not math.prod(values.shape):
        raise ArgumentError(
            say(
                "{kind} needs at least one element; got an input of shape {shape}. "
                "Skip empty batches.",
                kind=spec.kind,
                shape=tuple(values.shape),
            )
        )
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused just below
        hidden = None if mask is None else seen.split(mask)
        batch = moments(spec, seen.split(values), seen.reduced, hidden)
    refuse_non_finite(say("the mean"), batch.mean)
    refuse_non_finite(say("the sum of squares"), batch.m2)
    return batch


def _mean(x: Array, axes: Sequence[int]) -> Array:
    return namespace(x).mean(x, axis=tuple(axes), keepdims=True) if axes else x


def _count(spec: NormSpec, x: Array, axes: Sequence[int], mask: Array | None) -> Array | int:
    if mask is None:
        return math.prod(x.shape[axis] for axis in axes)
    if spec.mask is None:
        raise ArgumentError(
            say(
                "{kind} takes no mask; got one. Leave it out, or use a layer whose "
                "preset has a `mask`.",
                kind=spec.kind,
            )
        )
    xp = namespace(x)
    counted = total(xp.astype(mask, x.dtype), axes) + spec.mask.added
    if not bool(xp.all(counted > 0)):
        raise ArgumentError(
            say(
                "{kind} needs an unmasked element in every set; got a set that is "
                "masked altogether. Skip such batches.",
                kind=spec.kind,
            )
        )
    return counted
