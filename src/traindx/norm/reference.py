"""Forward, running update and evaluation of every normalization, in float64.

Shapes: `B` batch, `C` channels; `R` the reduced axes, `K` the kept ones, so an input is [K, R] in
some order of axes. BatchNorm on [B, C, ...] keeps C; LayerNorm reduces the last axes.
Only functions of the array API standard are used, so that other arrays can take the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traindx.errors import ArgumentError
from traindx.norm.spec import Axes, EpsPlacement, Estimator, NormSpec, OneSample, Running

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Mean and spread of the elements that are normalized together.

    Attributes:
        mean: [K, R with extents 1].
        m2: Sum of squared deviations from the mean, of the same shape.
        count: Elements behind each mean.
    """

    mean: Array
    m2: Array
    count: int

    def variance(self, estimator: Estimator) -> Array:
        """The variance by one estimator, shaped as the mean."""
        if self.count <= estimator.lost:
            raise ArgumentError(
                f"An {estimator.value} variance needs at least {estimator.lost + 1} elements; "
                f"got {self.count}. Use a larger batch."
            )
        return self.m2 / (self.count - estimator.lost)


@dataclass(frozen=True, slots=True)
class RunningStats:
    """What a layer remembers of its batches: mean [K], variance [K] and their number."""

    mean: Array
    var: Array
    num_batches_tracked: int = 0


def statistics(spec: NormSpec, x: ArrayLike) -> Statistics:
    """Mean and squared deviations of `x` [K, R], in two passes.

    The deviations are taken from the mean and not as E[x^2] - E[x]^2, which cancels when the mean
    is large.
    """
    values = _finite("the input", x)
    axes = spec.reduced.of(values.ndim)
    count = math.prod(values.shape[axis] for axis in axes)
    if not values.size:
        raise ArgumentError(
            f"{spec.kind} needs at least one element; got an input of shape {values.shape}. "
            "Skip empty batches."
        )
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused just below
        mean = np.mean(values, axis=axes, keepdims=True)
        m2 = np.sum((values - mean) ** 2, axis=axes, keepdims=True)
    return Statistics(_finite("the mean", mean), _finite("the sum of squares", m2), count)


def forward(
    spec: NormSpec, x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None
) -> Array:
    """The output in training: `x` [K, R] normalized by its own statistics."""
    values = _finite("the input", x)
    batch = statistics(spec, values)
    if batch.count == 1 and spec.one_sample is OneSample.REFUSE:
        raise ArgumentError(
            f"{spec.kind} needs more than one element for each statistic in training; got 1 in an "
            f"input of shape {values.shape}. Use a larger batch, or LayerNorm or GroupNorm."
        )
    return _normalize(spec, values, batch.mean, batch.variance(spec.variance), weight, bias)


def evaluate(
    spec: NormSpec,
    running: RunningStats,
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
) -> Array:
    """The output in evaluation: `x` [K, R] normalized by the running statistics."""
    values = _finite("the input", x)
    shape, kept = values.shape, _kept(spec, values.ndim)
    mean = _spread("running_mean", running.mean, shape, kept)
    var = _spread("running_var", running.var, shape, kept)
    if np.any(var < 0):
        raise ArgumentError(
            f"`running_var` must not be negative; got {float(np.min(var))}. "
            "Reset the running statistics and estimate them again."
        )
    return _normalize(spec, values, mean, var, weight, bias)


def updated(spec: NormSpec, running: RunningStats, x: ArrayLike) -> RunningStats:
    """The running statistics after one more training batch `x` [K, R]."""
    rule = _running_rule(spec)
    values = _finite("the input", x)
    batch, kept = statistics(spec, values), _kept(spec, values.ndim)
    tracked = running.num_batches_tracked + 1
    momentum = 1 / tracked if rule.momentum is None else rule.momentum

    def blend(name: str, old: Array, new: Array) -> Array:
        _spread(name, old, values.shape, kept)
        # The new value is multiplied by momentum, not divided by 1 / momentum: 0.1 * 3.0 is
        # 0.30000000000000004 in float64, as torch's kernel has it, while 3.0 / 10 is 0.3.
        return (1 - momentum) * old + momentum * np.reshape(new, old.shape)

    return RunningStats(
        blend("running_mean", running.mean, batch.mean),
        blend("running_var", running.var, batch.variance(rule.variance)),
        tracked,
    )


def fresh(spec: NormSpec, shape: Sequence[int]) -> RunningStats:
    """The running statistics before the first batch of `shape`: mean 0, variance 1."""
    _running_rule(spec)
    extents = tuple(shape[axis] for axis in _kept(spec, len(shape)).named)
    return RunningStats(np.zeros(extents), np.ones(extents))


def _normalize(
    spec: NormSpec,
    values: Array,
    mean: Array,
    var: Array,
    weight: ArrayLike | None,
    bias: ArrayLike | None,
) -> Array:
    y = (values - mean) / _divisor(spec, var)
    if weight is not None:
        y = y * _spread("weight", weight, values.shape, spec.affine)
    if bias is not None:
        y = y + _spread("bias", bias, values.shape, spec.affine)
    return y


def _divisor(spec: NormSpec, var: Array) -> Array:
    if spec.eps_placement is EpsPlacement.INSIDE_ROOT:
        return np.sqrt(var + spec.eps)
    return np.sqrt(var) + spec.eps


def _running_rule(spec: NormSpec) -> Running:
    if spec.running is None:
        raise ArgumentError(
            f"Running statistics need a layer that keeps them; got {spec.kind}, which does not. "
            "Call `forward`, which is the same in training and evaluation."
        )
    return spec.running


def _kept(spec: NormSpec, ndim: int) -> Axes:
    reduced = spec.reduced.of(ndim)
    return Axes(tuple(axis for axis in range(ndim) if axis not in reduced))


def _spread(name: str, values: ArrayLike, shape: Sequence[int], axes: Axes) -> Array:
    """Values given along `axes`, shaped to broadcast against an input of `shape`."""
    along = axes.of(len(shape))
    wanted = tuple(shape[axis] for axis in along)
    given = _finite(f"`{name}`", values)
    if given.shape != wanted:
        raise ArgumentError(
            f"`{name}` needs shape {wanted} for an input of shape {tuple(shape)}; got "
            f"{given.shape}. Pass one value for each index of axes {along}."
        )
    return np.reshape(given, tuple(n if axis in along else 1 for axis, n in enumerate(shape)))


def _finite(name: str, values: ArrayLike) -> Array:
    try:
        if np.iscomplexobj(values):
            raise TypeError("the numbers are complex")
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"Normalization needs an array of real numbers for {name}; got what NumPy cannot read "
            f"as one ({error}). Pass numbers in rows of equal length."
        ) from error
    if not np.all(np.isfinite(array)):
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ArgumentError(
            f"Normalization needs finite numbers for {name}; got {array[place]} at index {place}. "
            "One such element spoils its whole statistic: find where it comes from, or remove it."
        )
    return array
