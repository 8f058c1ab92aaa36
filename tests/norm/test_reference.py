"""The float64 reference against torch, and the relations that normalization obeys."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch.nn import functional

from traindx.norm.choices import EpsPlacement
from traindx.norm.presets import torch_batch_norm, torch_layer_norm
from traindx.norm.reference import Array, RunningStats, evaluate, forward, fresh, updated
from traindx.norm.spec import NormSpec

LIMIT = 1e-12
SHAPES = [(5, 3), (4, 3, 7), (2, 3, 4, 5), (2, 3, 2, 3, 2), (2, 1)]


def draw(shape: tuple[int, ...], seed: int = 0, mean: float = 0.5) -> Array:
    return np.random.default_rng(seed).normal(mean, 2.0, shape)


def apart(ours: Array, theirs: torch.Tensor) -> float:
    return float(np.max(np.abs(ours - theirs.numpy())))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("momentum", [0.1, 0.7, None])
def test_batch_norm_agrees_with_torch_over_several_batches(
    shape: tuple[int, ...], momentum: float | None
) -> None:
    spec = torch_batch_norm(momentum=momentum)
    layers = [torch.nn.BatchNorm1d, torch.nn.BatchNorm1d, torch.nn.BatchNorm2d]
    kind = [*layers, torch.nn.BatchNorm3d][len(shape) - 2]
    layer = kind(shape[1], momentum=momentum, dtype=torch.float64)
    weight, bias = draw((2, shape[1]), seed=9)
    layer.load_state_dict(
        {"weight": torch.tensor(weight), "bias": torch.tensor(bias)}, strict=False
    )
    running = fresh(spec, shape)
    with torch.no_grad():
        for seed in range(3):
            x = draw(shape, seed)
            assert apart(forward(spec, x, weight, bias), layer(torch.tensor(x))) <= LIMIT
            running = updated(spec, running, x)
        assert apart(running.mean, layer.get_buffer("running_mean")) <= LIMIT
        assert apart(running.var, layer.get_buffer("running_var")) <= LIMIT
        assert running.num_batches_tracked == layer.get_buffer("num_batches_tracked").item()
        y = layer.eval()(torch.tensor(x))
        assert apart(evaluate(spec, running, x, weight, bias), y) <= LIMIT


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("normalized_ndim", [1, 2])
def test_layer_norm_agrees_with_torch(shape: tuple[int, ...], normalized_ndim: int) -> None:
    normalized = shape[-normalized_ndim:]
    x, weight, bias = draw(shape), draw(normalized, 1), draw(normalized, 2)
    y = functional.layer_norm(
        torch.tensor(x), normalized, torch.tensor(weight), torch.tensor(bias), eps=1e-3
    )
    spec = torch_layer_norm(normalized_ndim=normalized_ndim, eps=1e-3)
    assert apart(forward(spec, x, weight, bias), y) <= LIMIT
    plain = functional.layer_norm(torch.tensor(x), normalized, eps=1e-3)
    assert apart(forward(spec, x), plain) <= LIMIT


def test_eps_outside_the_root_is_added_to_the_standard_deviation() -> None:
    spec = replace(torch_layer_norm(eps=0.5), eps_placement=EpsPlacement.OUTSIDE_ROOT)
    assert forward(spec, [[-2.0, 2.0]]).tolist() == [[-2 / 2.5, 2 / 2.5]]


tables = arrays.arrays(
    np.float64,
    arrays.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=6),
    elements=st.floats(-8, 8, width=32),
)
scales = st.floats(0.125, 8)


@settings(max_examples=60, deadline=None)
@given(x=tables, scale=scales, shift=st.floats(-8, 8), sign=st.sampled_from([1, -1]))
@pytest.mark.parametrize("preset", [torch_batch_norm, torch_layer_norm])
def test_scaling_and_shifting_the_input_changes_at_most_the_sign_if_eps_scales_too(
    preset: Callable[..., NormSpec], x: Array, scale: float, shift: float, sign: int
) -> None:
    plain = forward(preset(eps=1e-2), x)
    moved = forward(preset(eps=1e-2 * scale**2), sign * scale * x + shift)
    # |x| / sqrt(eps) <= 1e3 bounds how much a rounding of the moved input is magnified.
    assert np.allclose(moved, sign * plain, rtol=0, atol=1e-11)


@settings(max_examples=60, deadline=None)
@given(x=tables, seed=st.integers(0, 99))
def test_permuting_channels_or_samples_permutes_batch_norm(x: Array, seed: int) -> None:
    spec, rng = torch_batch_norm(), np.random.default_rng(seed)
    channels, samples = rng.permutation(x.shape[1]), rng.permutation(x.shape[0])
    y = forward(spec, x)
    # Another order in memory may be another order of summation, and round otherwise.
    assert np.allclose(forward(spec, x[:, channels]), y[:, channels], rtol=0, atol=1e-11)
    assert np.allclose(forward(spec, x[samples]), y[samples], rtol=0, atol=1e-11)


@settings(max_examples=60, deadline=None)
@given(x=tables)
def test_a_normalized_channel_has_mean_0_and_variance_just_below_1(x: Array) -> None:
    assume(float(np.min(np.var(x, axis=0))) > 1e-3)
    y = forward(torch_batch_norm(), x)
    var = np.var(x, axis=0)
    assert np.allclose(np.mean(y, axis=0), 0, atol=1e-12)
    assert np.allclose(np.var(y, axis=0), var / (var + 1e-5), rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(x=tables)
def test_evaluation_and_layer_norm_give_a_sample_the_same_bits_in_any_batch(x: Array) -> None:
    running = updated(torch_batch_norm(), fresh(torch_batch_norm(), x.shape), x)
    whole = evaluate(torch_batch_norm(), running, x)
    assert np.array_equal(whole[:1], evaluate(torch_batch_norm(), running, x[:1]))
    assert np.array_equal(forward(torch_layer_norm(), x)[:1], forward(torch_layer_norm(), x[:1]))


def test_large_mean_does_not_cancel_the_variance() -> None:
    x = 1e8 + np.array([[0.0], [1.0], [2.0], [3.0]])
    y = forward(torch_batch_norm(), x)[:, 0]
    expected = np.array([-1.5, -0.5, 0.5, 1.5]) / np.sqrt(1.25 + 1e-5)
    assert np.allclose(y, expected, rtol=1e-14)


def test_equal_weight_momentum_averages_batch_statistics_and_does_not_pool_them() -> None:
    spec = torch_batch_norm(momentum=None)
    running = fresh(spec, (2, 1))
    for batch in ([1, 3], [10, 20], [0, 0, 3, 9]):
        running = updated(spec, running, np.array(batch, dtype=float)[:, None])
    assert np.allclose(running.mean, 20 / 3, rtol=1e-15)
    assert np.allclose(running.var, 70 / 3, rtol=1e-15)


def test_updating_leaves_the_old_statistics_alone() -> None:
    before = RunningStats(np.zeros(2), np.ones(2))
    updated(torch_batch_norm(), before, [[1, 2], [3, 0]])
    assert before.mean.tolist() == [0, 0]
    assert before.num_batches_tracked == 0
