"""One layer over shards of a batch, as SyncBatchNorm computes it on several ranks.

Shards may differ in size and may be empty. Ranks exchange two things: their statistics, which merge
exactly, and the inner products of `scaling`, which add up. A weight's gradient stays each shard's
own; data parallelism adds those by itself, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm.affine import affine, parameter, weighted
from traindx.norm.arrays import Array, ArrayLike, read
from traindx.norm.gradients import DoubleGradients, Gradients, double_of_pass, of_pass
from traindx.norm.moments import Statistics, moments
from traindx.norm.passes import Pass, RunningStats, training_pass
from traindx.norm.running import blended
from traindx.norm.running import updated as updated_by_one
from traindx.norm.scaling import added
from traindx.norm.spec import NormSpec

Shards = Sequence[ArrayLike]


def statistics(spec: NormSpec, shards: Shards) -> Statistics:
    """The statistics of all shards together, by merging those of each."""
    return _merged(spec, _read(spec, say("a shard"), shards))


def forward(
    spec: NormSpec,
    shards: Shards,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
) -> list[Array]:
    """Each shard's output in training, normalized by the statistics of all."""
    values = _read(spec, say("a shard"), shards)
    passes = _passes(spec, values)
    return [affine(spec, taken.output(), weight, bias) for taken in passes]


def updated(spec: NormSpec, running: RunningStats, shards: Shards) -> RunningStats:
    """The running statistics of every rank after one more training batch."""
    values = _read(spec, say("a shard"), shards)
    batch = _merged(spec, values)
    if isinstance(batch.count, int) and not batch.count:
        return updated_by_one(spec, running, values[0])
    return blended(spec, running, values[0], batch)


def backward(
    spec: NormSpec, dys: Shards, shards: Shards, weight: ArrayLike | None = None
) -> list[Gradients]:
    """Each shard's gradients; those by the input reach over all shards."""
    values = _read(spec, say("a shard"), shards)
    given = [read("`dy`", dy, like=x) for dy, x in zip(dys, values, strict=True)]
    passes = _passes(spec, values)
    parts = [taken.sums(weighted(spec, g, weight)) for taken, g in zip(passes, given, strict=True)]
    whole = added(parts)
    return [of_pass(spec, *of, weight, whole) for of in zip(passes, given, strict=True)]


def double_backward(
    spec: NormSpec,
    seeds: Sequence[Gradients],
    dys: Shards,
    shards: Shards,
    weight: ArrayLike | None = None,
) -> list[DoubleGradients]:
    """Each shard's part in the gradients of all seeds' inner products with `backward`."""
    values = _read(spec, say("a shard"), shards)
    given = [read("`dy`", dy, like=x) for dy, x in zip(dys, values, strict=True)]
    read_seeds = [_read_seed(spec, seed, x) for seed, x in zip(seeds, values, strict=True)]
    parts = list(zip(_passes(spec, values), read_seeds, given, strict=True))
    whole = added([taken.sums(weighted(spec, dy, weight), h.x) for taken, h, dy in parts])
    by_weight = added([taken.sums(h.weight * dy) for taken, h, dy in parts])
    return [
        double_of_pass(spec, taken, seed, dy, weight, (whole, by_weight))
        for taken, seed, dy in parts
    ]


def _read_seed(spec: NormSpec, seed: Gradients, x: Array) -> Gradients:
    """A seed whose weight part acts on every element, 0 if none was given."""
    k = 0 * x if seed.weight is None else 0 * x + parameter(spec, "weight", seed.weight, x)
    return Gradients(read("`seeds.x`", seed.x, like=x), k, seed.bias)


def _passes(spec: NormSpec, values: Sequence[Array]) -> list[Pass]:
    batch = _merged(spec, values)
    return [training_pass(spec, x, batch=batch) for x in values]


def _merged(spec: NormSpec, values: Sequence[Array]) -> Statistics:
    reduced = [moments(spec, x, spec.reduced.of(x.ndim)) for x in values]
    return reduce(Statistics.merged, reduced)


def _read(spec: NormSpec, name: str, shards: Shards) -> list[Array]:
    values = [read(name, shard) for shard in shards]
    if not values or spec.groups or 0 not in spec.reduced.of(values[0].ndim):
        raise ArgumentError(
            say(
                "Shards need a layer whose statistics span the whole batch, and at "
                "least one shard; got {kind} and {count}. Use a BatchNorm preset.",
                kind=spec.kind,
                count=len(values),
            )
        )
    extents = {tuple(x.shape[1:]) for x in values}
    if len({shape[:1] for shape in extents}) > 1:
        raise ArgumentError(
            say(
                "Shards need the same number of channels; got the shapes {shapes}. "
                "Shard the batch axis.",
                shapes=", ".join(str(tuple(x.shape)) for x in values),
            )
        )
    return values
