"""Running statistics: how they begin and how a training batch moves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from traindx.norm.arrays import INPUT, Array, ArrayLike, namespace, read, spread
from traindx.norm.choices import EmptyBatch
from traindx.norm.moments import Layout, Statistics, layout, statistics
from traindx.norm.passes import RunningStats, passes_unchanged, read_mask, running_rule
from traindx.norm.scaling import rates
from traindx.norm.spec import NormSpec, Running


def fresh(spec: NormSpec, shape: Sequence[int]) -> RunningStats:
    """The running statistics before the first batch of `shape`: mean 0, variance 1."""
    extents = tuple(shape[axis] for axis in running_rule(spec).axes.of(len(shape)))
    return RunningStats(np.zeros(extents), np.ones(extents))


def updated(
    spec: NormSpec, running: RunningStats, x: ArrayLike, *, mask: ArrayLike | None = None
) -> RunningStats:
    """The running statistics after one more training batch `x` [K, R]."""
    rule, values = running_rule(spec), read(INPUT, x)
    if not passes_unchanged(spec, values):
        batch = statistics(spec, values, read_mask(values, mask))
        return blended(spec, running, values, batch)
    counts = 0 in values.shape and rule.counted and spec.empty is EmptyBatch.KEEP_AND_COUNT
    if 0 in values.shape and spec.empty is EmptyBatch.POISON:
        poison = read("`running_mean`", running.mean, finite=False) * float("nan")
        return RunningStats(poison, poison, running.num_batches_tracked)
    return RunningStats(running.mean, running.var, running.num_batches_tracked + counts)


def blended(
    spec: NormSpec, running: RunningStats, values: Array, batch: Statistics
) -> RunningStats:
    """The running statistics after a batch whose statistics are `batch`, shaped as `values`."""
    rule, seen = running_rule(spec), layout(spec, values.shape)
    tracked = running.num_batches_tracked + rule.counted
    momentum = 1 / max(tracked, 1) if rule.momentum is None else rule.momentum

    def blend(name: str, old: Array, new: Array) -> Array:
        spread(name, old, values, rule.axes)
        before = read(f"`{name}`", old, like=values)
        after = namespace(new).reshape(_averaged(rule, seen, new), before.shape)
        if rule.of_roots and name == "running_var":
            return _blended_roots(spec, before, after, momentum)
        # The new value is multiplied by momentum, not divided by 1 / momentum: 0.1 * 3.0 is
        # 0.30000000000000004 in float64, as torch's kernel has it, while 3.0 / 10 is 0.3.
        return (1 - momentum) * before + momentum * after

    return RunningStats(
        blend("running_mean", running.mean, batch.mean),
        blend("running_var", running.var, batch.variance(rule.variance)),
        tracked,
    )


def _averaged(rule: Running, seen: Layout, kept: Array) -> Array:
    """Statistics averaged over the sets that share a place in the running ones."""
    along = {seen.place(axis) for axis in rule.axes.of(len(seen.shape))}
    others = tuple(axis for axis in range(kept.ndim) if axis not in along)
    if all(kept.shape[axis] == 1 for axis in others):
        return kept  # not a mean of one, which a library may round
    return namespace(kept).mean(kept, axis=others)


def _blended_roots(spec: NormSpec, old: Array, new: Array, momentum: float) -> Array:
    xp: Any = namespace(new)
    root = (1 - momentum) / rates(spec, old)[0] + momentum / rates(spec, new)[0]
    assert spec.eps is not None, "roots are kept by layers that have one"
    squared = root**2 - spec.eps
    return xp.where(squared < 0, 0.0, squared)
