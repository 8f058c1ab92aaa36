"""A checked pass of an input through a layer, in training or by constants."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm.arrays import Array, ArrayLike, namespace, read, spread
from traindx.norm.choices import EmptyBatch, OneSample
from traindx.norm.moments import Layout, Statistics, layout, scale_of, statistics
from traindx.norm.scaling import Scaling, Sums, by_batch, by_constants, rates
from traindx.norm.spec import NormSpec, Running


@dataclass(frozen=True, slots=True)
class RunningStats:
    """What a layer remembers of its batches: mean [K], variance [K] and their number."""

    mean: ArrayLike
    var: ArrayLike
    num_batches_tracked: int = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """A scaling and the way between the input's axes and those it sees."""

    seen: Layout
    scaling: Scaling

    def output(self) -> Array:
        """What is normalized, before weight and bias."""
        return self.seen.join(self.scaling.output())

    def sums(self, g: Array, h: Array | None = None) -> Sums:
        """This part's share in the inner products of each set."""
        return self.scaling.sums(self.seen.split(g), None if h is None else self.seen.split(h))

    def pull(self, g: Array, sums: Sums | None = None) -> Array:
        """The gradient by the input for a gradient `g` of the normalized output."""
        return self.seen.join(self.scaling.pull(self.seen.split(g), sums))

    def push(self, g: Array, h: Array, sums: Sums | None = None) -> Array:
        """How the normalized output moves when the input moves along `h`."""
        return self.seen.join(self.scaling.push(self.seen.split(g), self.seen.split(h), sums))

    def bend(self, g: Array, h: Array, sums: Sums | None = None) -> Array:
        """The gradient of <h, pull(g)> by the input."""
        return self.seen.join(self.scaling.bend(self.seen.split(g), self.seen.split(h), sums))


def training_pass(
    spec: NormSpec,
    values: Array,
    running: RunningStats | None = None,
    mask: Array | None = None,
    batch: Statistics | None = None,
) -> Pass:
    """The pass of `values` by their own statistics, or by those of the `batch` they are part of."""
    seen = layout(spec, values.shape)
    batch = batch or statistics(spec, values, mask)
    _refuse_one_sample(spec, values, batch, seen)
    x, hidden = seen.split(values), None if mask is None else seen.split(mask)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # refused just below
        scaling = by_batch(spec, x, batch, seen.reduced, hidden)
    _refuse_no_divisor(spec, scaling, scale_of(spec, batch))
    if spec.renorm is not None:
        scaling = _renormalized(spec, scaling, batch, _running_views(spec, running, values, seen))
    return Pass(seen, scaling)


def constant_pass(spec: NormSpec, values: Array, running: RunningStats) -> Pass:
    """The pass of `values` by running statistics."""
    axes = running_rule(spec).axes
    mean = spread("running_mean", running.mean, values, axes)
    var = spread("running_var", running.var, values, axes)
    refuse_negative(var)
    # Evaluation knows no groups: every sample meets the same constants.
    whole = Layout(tuple(values.shape), tuple(values.shape), spec.reduced.of(values.ndim))
    scaling = by_constants(spec, values, mean, var, whole.reduced)
    _refuse_no_divisor(spec, scaling, var)
    return Pass(whole, scaling)


def is_empty(spec: NormSpec, values: Array) -> bool:
    """Whether there is nothing to normalize; refused if the layer refuses it."""
    if 0 not in values.shape:
        return False
    if spec.empty is EmptyBatch.REFUSE:
        raise ArgumentError(
            say(
                "{kind} needs at least one element; got an input of shape {shape}. "
                "Skip empty batches.",
                kind=spec.kind,
                shape=tuple(values.shape),
            )
        )
    return True


def passes_unchanged(spec: NormSpec, values: Array) -> bool:
    """Whether the input is the output: nothing in it, or one sample that the layer lets through."""
    if is_empty(spec, values):
        return True
    return spec.one_sample is OneSample.IDENTITY and layout(spec, values.shape).count == 1


def running_rule(spec: NormSpec) -> Running:
    """How `spec` keeps running statistics; refused if it keeps none."""
    if spec.running is None:
        raise ArgumentError(
            say(
                "Running statistics need a layer that keeps them; got {kind}, "
                "which does not. Call `forward`, which is the same in training and "
                "evaluation.",
                kind=spec.kind,
            )
        )
    return spec.running


def read_mask(values: Array, mask: ArrayLike | None) -> Array | None:
    """A mask as an array of booleans of the shape of `values`."""
    if mask is None:
        return None
    given = read(say("the mask"), mask, like=values)
    return namespace(values).broadcast_to(given != 0, tuple(values.shape))


def refuse_negative(var: Array) -> None:
    """Raise where a running variance is below 0."""
    xp = namespace(var)
    if bool(xp.any(var < 0)):
        raise ArgumentError(
            say(
                "`running_var` must not be negative; got {value}. Reset the "
                "running statistics and estimate them again.",
                value=float(xp.min(var)),
            )
        )


def _renormalized(
    spec: NormSpec, scaling: Scaling, batch: Statistics, running: tuple[Array, Array]
) -> Scaling:
    """The scaling with Batch Renorm's r and d, which are constants to the gradient."""
    renorm, (old_mean, old_var) = spec.renorm, running
    assert renorm is not None, "asked for by the caller"
    # One over the running root: r divides the running root by the batch's, so y meets both.
    root = rates(spec, old_var)[0]
    r = _clipped(root / scaling.rates[0], renorm.rmin, renorm.rmax)
    d = (batch.mean - old_mean) * root
    d = d if renorm.dmax is None else _clipped(d, -renorm.dmax, renorm.dmax)
    rate, rate1, rate2 = scaling.rates
    return replace(scaling, rates=(rate * r, rate1 * r, rate2 * r), shift=d)


def _clipped(values: Array, least: float | None, most: float | None) -> Array:
    xp = namespace(values)
    if least is not None:
        values = xp.where(values < least, least, values)
    return values if most is None else xp.where(values > most, most, values)


def _running_views(
    spec: NormSpec, running: RunningStats | None, values: Array, seen: Layout
) -> tuple[Array, Array]:
    """Running mean and variance, shaped to broadcast against what the layout sees."""
    axes = running_rule(spec).axes
    if running is None:
        raise ArgumentError(
            say(
                "{kind} needs its running statistics in training too; got none. "
                "Pass `running`, or `fresh(spec, x.shape)` before the first batch.",
                kind=spec.kind,
            )
        )
    along = {seen.place(axis) for axis in axes.of(values.ndim)}
    shape = tuple(n if axis in along else 1 for axis, n in enumerate(seen.seen))
    xp = namespace(values)
    mean = spread("running_mean", running.mean, values, axes)
    var = spread("running_var", running.var, values, axes)
    refuse_negative(var)
    return xp.reshape(mean, shape), xp.reshape(var, shape)


def _refuse_one_sample(spec: NormSpec, values: Array, batch: Statistics, seen: Layout) -> None:
    if not isinstance(batch.count, int) or batch.count != 1:
        return
    alone = spec.one_sample is OneSample.REFUSE_LONE and values.shape[0] == 1
    if spec.one_sample is OneSample.REFUSE or alone:
        raise ArgumentError(
            say(
                "{kind} needs more than one element for each statistic in "
                "training; got 1 in an input of shape {shape}. Use a larger batch, "
                "or LayerNorm or GroupNorm.",
                kind=spec.kind,
                shape=seen.shape,
            )
        )


def _refuse_no_divisor(spec: NormSpec, scaling: Scaling, spread_of_sets: Array) -> None:
    xp = namespace(spread_of_sets)
    if not bool(xp.all(xp.isfinite(scaling.rates[0]))):
        raise ArgumentError(
            say(
                "{kind} with eps={eps} needs a spread that keeps its divisor above "
                "0; got {value} for a set of elements. Use a positive eps.",
                kind=spec.kind,
                eps=spec.eps,
                value=float(xp.min(spread_of_sets)),
            )
        )
