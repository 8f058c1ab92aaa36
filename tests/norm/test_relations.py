"""What normalization must obey whatever its numbers: eleven relations that need no oracle."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from traindx.norm import sync
from traindx.norm.choices import Estimator, GroupOrder
from traindx.norm.layers import (
    batch_norm,
    batch_renorm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from traindx.norm.presets import preset
from traindx.norm.reference import (
    Array,
    Gradients,
    RunningStats,
    backward,
    double_backward,
    evaluate,
    forward,
    fresh,
    updated,
)
from traindx.norm.spec import Axes, NormSpec

EPS = 1e-2  # |x| / sqrt(eps) bounds how much a rounding of the input is magnified
SLACK = 1e-11

CENTERED: dict[str, Callable[..., NormSpec]] = {
    "BatchNorm": batch_norm,
    "LayerNorm": layer_norm,
    "GroupNorm": lambda **o: group_norm(num_groups=2, **o),
    "GroupNorm, interleaved": lambda **o: group_norm(
        num_groups=2, order=GroupOrder.INTERLEAVED, **o
    ),
    "InstanceNorm": instance_norm,
}

values = st.floats(-8, 8, width=32)
images = st.tuples(
    st.integers(2, 4), st.sampled_from([2, 4, 6]), st.integers(2, 3), st.integers(1, 3)
).flatmap(lambda shape: arrays.arrays(np.float64, shape, elements=values))
quick = settings(max_examples=25, deadline=None)


def near(a: Array, b: Array, slack: float = SLACK) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=slack))


def seeded(like: Array, seed: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=like.shape)


@quick
@given(x=images, scale=st.floats(0.125, 8), shift=st.floats(-8, 8))
@pytest.mark.parametrize("kind", CENTERED)
def test_1_scale_and_shift_vanish_if_eps_scales_with_them(
    kind: str, x: Array, scale: float, shift: float
) -> None:
    make = CENTERED[kind]
    moved = forward(make(eps=EPS * scale**2), scale * x + shift)
    assert near(moved, forward(make(eps=EPS), x))


@quick
@given(x=images)
@pytest.mark.parametrize("kind", CENTERED)
def test_2_the_gradient_sums_to_0_and_along_the_output_to_a_term_of_eps(
    kind: str, x: Array
) -> None:
    spec = replace(CENTERED[kind](eps=EPS), affine=None)
    dx, y = backward(spec, seeded(x), x).x, forward(spec, x)
    assert near(sums(spec, dx), 0 * sums(spec, dx))
    # <dx, y> = r <dy, y> (1 - r^2 var), and 1 - r^2 var = r^2 eps.
    root = sums(spec, y * y) / count(spec, x)
    r2 = (1 - root) / EPS
    assert near(sums(spec, dx * y), np.sqrt(r2) * sums(spec, seeded(x) * y) * r2 * EPS, 1e-8)


def count(spec: NormSpec, x: Array) -> float:
    return x.size / sums(spec, x).size


def sums(spec: NormSpec, x: Array) -> Array:
    from traindx.norm.moments import layout

    seen = layout(spec, x.shape)
    return np.sum(seen.split(x), axis=seen.reduced)


@quick
@given(x=images)
def test_3_layers_that_reduce_the_same_elements_are_the_same_layer(x: Array) -> None:
    channels = x.shape[1]
    whole = replace(layer_norm(normalized_ndim=3, eps=EPS), affine=None)
    assert near(forward(group_norm(num_groups=1, eps=EPS), x), forward(whole, x))
    single = forward(instance_norm(eps=EPS), x)
    for groups in (channels, -1):
        assert near(forward(group_norm(num_groups=groups, eps=EPS), x), single)
    assert near(forward(batch_norm(eps=EPS), x[:1]), single[:1])
    centred = x - x.mean(axis=-1, keepdims=True)
    assert near(forward(rms_norm(eps=EPS), centred), forward(layer_norm(eps=EPS), centred))
    rolled = np.swapaxes(x.reshape(len(x), channels // 2, 2, *x.shape[2:]), 1, 2).reshape(x.shape)
    mixed = forward(group_norm(num_groups=2, eps=EPS, order=GroupOrder.INTERLEAVED), x)
    back = np.swapaxes(mixed.reshape(len(x), channels // 2, 2, *x.shape[2:]), 1, 2)
    assert near(forward(group_norm(num_groups=2, eps=EPS), rolled), back.reshape(x.shape))


def shards(x: Array, cuts: Sequence[int]) -> list[Array]:
    places = sorted(cut % (len(x) + 1) for cut in cuts)
    return np.split(x, places)


@quick
@given(x=images, cuts=st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_4_any_split_over_ranks_computes_what_the_whole_batch_does(
    x: Array, cuts: list[int]
) -> None:
    spec = preset("torch.SyncBatchNorm", eps=EPS)
    weight, bias = np.random.default_rng(2).normal(size=(2, x.shape[1]))
    parts = [shards(part, cuts) for part in (x, seeded(x), seeded(x, 3))]
    assert near(joined(sync.forward(spec, parts[0], weight, bias)), forward(spec, x, weight, bias))
    whole = backward(spec, seeded(x), x, weight)
    found = sync.backward(spec, parts[1], parts[0], weight)
    assert near(joined([g.x for g in found]), whole.x, 1e-9)
    assert near(total(g.weight for g in found), whole.weight, 1e-9)
    assert near(total(g.bias for g in found), whole.bias, 1e-9)
    seeds = [Gradients(h, weight, bias) for h in parts[2]]
    twice = double_backward(spec, Gradients(seeded(x, 3), weight, bias), seeded(x), x, weight)
    split = sync.double_backward(spec, seeds, parts[1], parts[0], weight)
    assert near(joined([g.x for g in split]), twice.x, 1e-7)
    assert near(joined([g.dy for g in split]), twice.dy, 1e-9)
    assert near(total(g.weight for g in split), twice.weight, 1e-7)
    running = fresh(spec, x.shape)
    after, same = updated(spec, running, x), sync.updated(spec, running, parts[0])
    assert near(after.mean, same.mean)
    assert near(after.var, same.var)
    assert same.num_batches_tracked == 1


def total(parts: Iterable[Any]) -> Array:
    return sum(parts)


def joined(parts: Sequence[Array]) -> Array:
    return np.concatenate(parts)


@quick
@given(x=images, size=st.integers(1, 3))
def test_5_ghost_batch_norm_is_batch_norm_of_each_chunk(x: Array, size: int) -> None:
    whole = np.concatenate([x] * size)[: len(x) // size * size or size]
    chunks = np.split(whole, len(whole) // size)
    ghost = batch_norm(virtual_batch_size=size, eps=EPS)
    plain = batch_norm(eps=EPS)
    assert near(forward(ghost, whole), joined([forward(plain, chunk) for chunk in chunks]))
    after = [updated(plain, fresh(plain, x.shape), chunk) for chunk in chunks]
    once = updated(ghost, fresh(ghost, x.shape), whole)
    assert near(once.mean, np.mean([a.mean for a in after], axis=0))
    assert near(once.var, np.mean([a.var for a in after], axis=0))


@quick
@given(x=images, batches=st.integers(1, 5))
def test_6_without_a_momentum_the_running_statistics_are_means_of_the_batches(
    x: Array, batches: int
) -> None:
    spec = preset("torch.BatchNorm2d", momentum=None)
    running, seen = fresh(spec, x.shape), [x + seeded(x, k) for k in range(batches)]
    for batch in seen:
        running = updated(spec, running, batch)
    assert near(running.mean, np.mean([b.mean(axis=(0, 2, 3)) for b in seen], axis=0))
    assert near(running.var, np.mean([b.var(axis=(0, 2, 3), ddof=1) for b in seen], axis=0))


@quick
@given(x=images)
def test_7_evaluation_gives_a_sample_the_same_bits_in_any_company(x: Array) -> None:
    spec = preset("torch.BatchNorm2d")
    running = updated(spec, fresh(spec, x.shape), x)
    assert np.array_equal(evaluate(spec, running, x)[:1], evaluate(spec, running, x[:1]))
    dx = backward(spec, seeded(x), x, running=running, training=False).x
    alone = backward(spec, seeded(x)[:1], x[:1], running=running, training=False).x
    assert np.array_equal(dx[:1], alone)


@quick
@given(x=images)
@pytest.mark.parametrize("kind", CENTERED)
def test_8_the_order_in_memory_does_not_matter(kind: str, x: Array) -> None:
    spec = CENTERED[kind](eps=EPS)
    y = forward(spec, x)
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    bigger = np.full((x.shape[0] * 2, *x.shape[1:]), 99.0)
    bigger[::2] = x
    assert near(forward(spec, last), y)
    assert near(forward(spec, bigger[::2]), y)
    tensor = torch.tensor(x).to(memory_format=torch.channels_last)
    assert near(forward(spec, tensor).numpy(), y)


@quick
@given(x=images, seed=st.integers(0, 99))
def test_9_permuting_samples_places_or_channels_commutes(x: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    samples, rows, channels = (rng.permutation(x.shape[axis]) for axis in (0, 2, 1))
    for make in CENTERED.values():
        spec = make(eps=EPS)
        y = forward(spec, x)
        assert near(forward(spec, x[samples]), y[samples])
        assert near(forward(spec, x[:, :, rows]), y[:, :, rows])
    for spec in (batch_norm(eps=EPS), instance_norm(eps=EPS)):
        assert near(forward(spec, x[:, channels]), forward(spec, x)[:, channels])


@quick
@given(x=images)
def test_10_a_layer_of_another_layout_answers_the_converted_input(x: Array) -> None:
    """Evaluation by torch's specification, and by those of channels-last frameworks."""
    torch_spec = preset("torch.BatchNorm2d", eps=EPS)
    running = updated(torch_spec, fresh(torch_spec, x.shape), x)
    weight, bias = np.random.default_rng(2).normal(size=(2, x.shape[1]))
    y = evaluate(torch_spec, running, x, weight, bias)
    for name in ("flax.BatchNorm", "keras.BatchNormalization", "mlx.BatchNorm"):
        other = preset(name, eps=EPS)
        last = evaluate(other, running, np.moveaxis(x, 1, -1), weight, bias)
        assert near(np.moveaxis(last, -1, 1), y)


@quick
@given(x=images, seed=st.integers(0, 99))
def test_11_batch_renorm_is_batch_norm_when_bound_and_the_running_layer_when_free(
    x: Array, seed: int
) -> None:
    mean, root = np.random.default_rng(seed).normal(size=(2, x.shape[1]))
    running = RunningStats(mean, root**2 + 0.5)
    bound = batch_renorm(rmin=1.0, rmax=1.0, dmax=0.0, eps=EPS)
    assert near(forward(bound, x, running=running), forward(batch_norm(eps=EPS), x))
    free = forward(batch_renorm(eps=EPS), x, running=running)
    assert near(free, evaluate(batch_norm(eps=EPS), running, x))


def test_the_relations_see_a_layer_that_breaks_them() -> None:
    """Relation 2 with the estimator changed on one side only: the check is not vacuous."""
    x = np.random.default_rng(0).normal(size=(3, 2, 2, 2))
    wrong: Any = replace(batch_norm(eps=EPS), variance=Estimator.UNBIASED)
    assert not near(forward(wrong, x[:1]), forward(instance_norm(eps=EPS), x[:1]))
    uneven = replace(batch_norm(eps=EPS), reduced=Axes((0, 2)))
    assert not near(forward(uneven, x), forward(batch_norm(eps=EPS), x))
