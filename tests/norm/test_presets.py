"""The frameworks' layers give what the frameworks were measured to give."""

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.norm.test_derivatives import apart
from traindx.errors import ArgumentError
from traindx.norm.choices import Estimator, GroupOrder, OneSample, Passes
from traindx.norm.layers import mean_variance
from traindx.norm.presets import PRESETS, Preset, find_preset, preset
from traindx.norm.reference import backward, evaluate, forward, fresh, updated
from traindx.norm.spec import NormSpec
from traindx.norm.torch_layers import spec_of

CHANNEL = np.array([[1.0], [3.0], [5.0], [7.0]])


def built(found: Preset) -> NormSpec:
    needed = [k for k, v in found.options.items() if v is inspect.Parameter.empty]
    return found.build(**dict.fromkeys(needed, 2))


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_builds_and_says_how_it_is_known(name: str) -> None:
    assert isinstance(built(PRESETS[name]), NormSpec)
    assert PRESETS[name].source.startswith(("measured, ", "read, "))


STORED = {
    "torch.BatchNorm1d": 20 / 3,
    "mlx.BatchNorm": 20 / 3,
    "tf_keras.BatchNormalization.fused": 20 / 3,
    "tf.FusedBatchNormV3": 20 / 3,
    "tf_keras.BatchNormalization": 5,
    "keras.BatchNormalization": 5,
    "flax.BatchNorm": 5,
    "onnx.BatchNormalization": 5,
    "paddle.BatchNorm": 5,
}


@pytest.mark.parametrize("name", STORED)
def test_1_3_5_7_with_all_weight_on_the_new_value_stores_the_measured_variance(name: str) -> None:
    spec = preset(name, momentum=1.0)
    after = updated(spec, fresh(spec, CHANNEL.shape), CHANNEL)
    assert after.mean.tolist() == [4]
    assert after.var.tolist() == pytest.approx([STORED[name]], rel=1e-15)


DEFAULTS = {  # eps and the weight of the new value
    "torch.BatchNorm2d": (1e-5, 0.1),
    "flax.BatchNorm": (1e-5, 0.01),
    "keras.BatchNormalization": (1e-3, 0.01),
    "tf_keras.BatchNormalization": (1e-3, 0.01),
    "tf.FusedBatchNormV3": (1e-4, 1.0),
    "onnx.BatchNormalization": (1e-5, 0.1),
    "mlx.BatchNorm": (1e-5, 0.1),
    "paddle.BatchNorm": (1e-5, 0.1),
    "torch.LayerNorm": (1e-5, None),
    "flax.LayerNorm": (1e-6, None),
    "keras.LayerNormalization": (1e-3, None),
    "torch.GroupNorm": (1e-5, None),
    "flax.GroupNorm": (1e-6, None),
    "keras.GroupNormalization": (1e-3, None),
    "flax.InstanceNorm": (1e-6, None),
    "torch.RMSNorm": (None, None),
    "flax.RMSNorm": (1e-6, None),
    "keras.RMSNormalization": (1e-6, None),
    "onnx.RMSNormalization": (1e-5, None),
    "mlx.RMSNorm": (1e-5, None),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_defaults_are_the_measured_ones(name: str) -> None:
    spec = built(find_preset(name))
    assert (spec.eps, spec.running and spec.running.momentum) == DEFAULTS[name]


def test_a_batch_of_one_sample_is_refused_computed_or_passed_on() -> None:
    one = np.array([[3.0, 4.0]])
    for name in ("torch.BatchNorm1d", "mlx.BatchNorm"):
        with pytest.raises(ArgumentError, match="more than one element"):
            forward(preset(name), one)
    for name in ("flax.BatchNorm", "keras.BatchNormalization", "tf_keras.BatchNormalization.fused"):
        spec = preset(name, momentum=1.0)
        assert forward(spec, one).tolist() == [[0, 0]]
        assert updated(spec, fresh(spec, one.shape), one).var.tolist() == [0, 0]
    paddle = preset("paddle.BatchNorm")
    assert forward(paddle, one, [2.0, 2.0], [1.0, 1.0]).tolist() == one.tolist()
    untouched = updated(paddle, fresh(paddle, one.shape), one)
    assert (untouched.mean.tolist(), untouched.var.tolist()) == ([0, 0], [1, 1])
    assert backward(paddle, one, one, [2.0, 2.0]).x.tolist() == one.tolist()


def test_group_norm_of_single_elements_is_refused_for_a_single_sample_only() -> None:
    spec = preset("torch.GroupNorm", num_groups=4)
    with pytest.raises(ArgumentError, match="more than one element"):
        forward(spec, [[1.0, 2.0, 3.0, 4.0]])
    assert forward(spec, [[1.0, 2.0, 3.0, 4.0]] * 2).tolist() == [[0.0] * 4] * 2


EMPTY = {
    "torch.BatchNorm1d": ("kept", 1),
    "flax.BatchNorm": ("poisoned", 0),
    "keras.BatchNormalization": ("poisoned", 0),
    "onnx.BatchNormalization": ("poisoned", 0),
    "mlx.BatchNorm": ("poisoned", 0),
    "paddle.BatchNorm": ("kept", 0),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_batch_keeps_counts_or_poisons_as_measured(name: str) -> None:
    spec, nothing = preset(name), np.empty((0, 2))
    after = updated(spec, fresh(spec, nothing.shape), nothing)
    what, counted = EMPTY[name]
    assert bool(np.all(np.isnan(after.var))) == (what == "poisoned")
    assert after.num_batches_tracked == counted
    assert forward(spec, nothing).shape == (0, 2)
    assert np.array_equal(backward(spec, nothing, nothing).weight, [0, 0])  # pyright: ignore[reportArgumentType]


def test_an_empty_batch_is_averaged_in_when_torch_averages_all_batches() -> None:
    spec = preset("torch.BatchNorm1d", momentum=None)
    running = updated(spec, fresh(spec, (0, 1)), np.empty((0, 1)))
    running = updated(spec, running, [[5.0], [7.0]])
    assert running.mean.tolist() == [3.0]


def test_a_tracked_instance_norm_without_momentum_never_moves() -> None:
    spec = preset("torch.InstanceNorm1d", variance=Estimator.UNBIASED, momentum=None)
    after = updated(spec, fresh(spec, (2, 1, 3)), np.ones((2, 1, 3)) * 5)
    assert (after.mean.tolist(), after.num_batches_tracked) == ([0.0], 0)


@pytest.mark.parametrize("momentum", [0.3, None])
def test_a_tracked_instance_norm_agrees_with_torch(momentum: float | None) -> None:
    layer = torch.nn.InstanceNorm2d(3, track_running_stats=True, momentum=momentum).double()  # pyright: ignore
    spec = spec_of(layer)
    running = fresh(spec, (4, 3, 2, 5))
    for seed in range(3):
        x = np.random.default_rng(seed).normal(1, 2, (4, 3, 2, 5))
        layer(torch.tensor(x))
        running = updated(spec, running, x)
    assert apart(running.mean, layer.get_buffer("running_mean")) <= 1e-12
    assert apart(running.var, layer.get_buffer("running_var")) <= 1e-12
    y = layer.eval()(torch.tensor(x))
    assert apart(evaluate(spec, running, x), y) <= 1e-12


def test_an_even_window_leans_back_in_torch_and_forward_in_onnx() -> None:
    x = np.array([[[1.0], [2.0], [3.0]]])
    options: dict[str, Any] = {"size": 2, "alpha": 2.0, "beta": 1.0}
    torch_y = forward(preset("torch.LocalResponseNorm", **options), x)
    assert torch_y[0, :, 0] == pytest.approx([1 / 2, 1 / 3, 3 / 14])
    onnx_y = forward(preset("onnx.LRN", **options), x)
    assert onnx_y[0, :, 0] == pytest.approx([1 / 6, 1 / 7, 3 / 10])


def test_a_window_far_beyond_both_ends_costs_what_one_over_the_whole_axis_does() -> None:
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    whole = preset("torch.LocalResponseNorm", size=11, alpha=0.11)
    huge = preset("torch.LocalResponseNorm", size=10**12 + 1, alpha=0.01 * (10**12 + 1))
    assert np.allclose(forward(huge, x), forward(whole, x), rtol=1e-12)
    empty = x[:, :0]
    assert forward(whole, empty).shape == empty.shape


def test_onnx_lrn_runs_over_channels_where_samples_and_channels_differ() -> None:
    x = np.arange(1.0, 5).reshape(1, 4, 1, 1)
    y = forward(preset("onnx.LRN", size=3, alpha=3.0, beta=1.0), x)
    assert y.ravel() == pytest.approx([1 / 6, 2 / 15, 3 / 30, 4 / 26])


def test_tensorflow_lrn_is_torchs_with_the_size_multiplied_in() -> None:
    x = np.random.default_rng(0).normal(size=(2, 7, 3))
    tensorflow = preset("tf.local_response_normalization", size=5, alpha=0.3)
    torch_spec = preset("torch.LocalResponseNorm", size=5, alpha=0.3 * 5, beta=0.5)
    last = forward(tensorflow, np.moveaxis(x, 1, -1))
    assert np.allclose(np.moveaxis(last, -1, 1), forward(torch_spec, x), rtol=0, atol=1e-14)


def test_mlx_groups_are_interleaved_unless_asked_to_be_torchs() -> None:
    x = [[0.0, 2.0, 10.0, 30.0]]
    mlx = forward(preset("mlx.GroupNorm", num_groups=2), x)
    assert np.sign(mlx).tolist() == [[-1, -1, 1, 1]]
    blocked = forward(preset("mlx.GroupNorm", num_groups=2, order=GroupOrder.BLOCKED), x)
    assert np.sign(blocked).tolist() == [[-1, 1, -1, 1]]


def test_scaling_by_std_is_not_scaling_by_rms() -> None:
    std = replace(preset("keras.LayerNormalization", eps=1e-12), centered=False)
    assert forward(std, [[1.0, 2.0, 3.0]])[0] == pytest.approx([1.225, 2.449, 3.674], abs=5e-4)
    rms = forward(preset("keras.RMSNormalization", eps=1e-12), [[1.0, 2.0, 3.0]])
    assert rms[0] == pytest.approx([0.463, 0.926, 1.389], abs=5e-4)


def test_a_large_mean_does_not_cancel_where_frameworks_do() -> None:
    right = np.array([-1.5, -0.5, 0.5, 1.5]) / np.sqrt(1.25 + 1e-5)
    x = 1e4 + np.arange(4.0)
    groups = forward(preset("onnx.GroupNormalization", num_groups=1), x[None, None])
    assert np.allclose(groups, right, rtol=1e-12)
    plain = forward(mean_variance(axes=(0,)), x)
    assert np.allclose(plain, right, rtol=1e-5)
    assert forward(mean_variance(axes=(0,)), [2.0, 2.0]).tolist() == [0, 0]


ONE_PASS = [name for name in PRESETS if built(PRESETS[name]).passes is not Passes.TWO]


@pytest.mark.parametrize("name", ONE_PASS)
def test_the_reference_is_exact_where_the_framework_takes_one_pass(name: str) -> None:
    spec = built(PRESETS[name])
    two = replace(spec, passes=Passes.TWO)
    generator = np.random.default_rng(0)
    x, dy = 1e8 + generator.normal(size=(4, 6, 64)), generator.normal(size=(4, 6, 64))
    assert np.array_equal(forward(spec, x), forward(two, x))
    assert np.array_equal(backward(spec, x, dy).x, backward(two, x, dy).x)
    if spec.running is not None:
        first = fresh(spec, x.shape)
        assert np.array_equal(updated(spec, first, x).var, updated(two, first, x).var)


def test_a_direction_of_zeros_is_refused_where_torch_gives_nan() -> None:
    with pytest.raises(ArgumentError, match="keeps its divisor above 0; got 0"):
        forward(preset("torch.weight_norm"), [[0.0, 0.0], [1.0, 2.0]])
    flax = forward(preset("flax.WeightNorm"), [[0.0, 3.0], [0.0, 4.0]])
    assert flax == pytest.approx(np.array([[0, 0.6], [0, 0.8]]), abs=1e-12)


def test_filter_response_norm_of_one_element_is_its_sign() -> None:
    y = forward(preset("paper.FilterResponseNorm", eps=1e-12), [[[3.0], [-2.0]]])
    assert y.ravel() == pytest.approx([1, -1])


def test_an_unknown_preset_names_its_neighbours() -> None:
    with pytest.raises(ArgumentError, match=r"got 'torch.BachNorm2d'. Near it: torch\.BatchNorm"):
        preset("torch.BachNorm2d")
    with pytest.raises(ArgumentError, match=r"Near it: .*torch\.GroupNorm"):
        preset("GroupNorm")


def test_an_unknown_or_missing_option_is_named_with_those_there_are() -> None:
    with pytest.raises(ArgumentError, match=r"takes the options .*momentum.*; got unknown decay"):
        preset("torch.BatchNorm2d", decay=0.9)
    with pytest.raises(ArgumentError, match="got no num_groups"):
        preset("torch.GroupNorm")


@pytest.mark.parametrize("name", ["torch.nn.LayerNorm", "flax.nnx.LayerNorm", "flax.linen.RMSNorm"])
def test_a_name_with_its_module_is_the_same_preset(name: str) -> None:
    framework, _, layer = name.rpartition(".")
    assert preset(name) == preset(f"{framework.partition('.')[0]}.{layer}")


def test_a_torch_layer_tells_its_specification_and_so_does_its_subclass() -> None:
    class Mine(torch.nn.BatchNorm2d):
        pass

    assert spec_of(Mine(3, momentum=None)) == preset("torch.BatchNorm2d", momentum=None)
    assert (
        spec_of(torch.nn.GroupNorm(2, 4)).groups == preset("torch.GroupNorm", num_groups=2).groups
    )
    assert (
        spec_of(torch.nn.LocalResponseNorm(4)).window
        == preset("torch.LocalResponseNorm", size=4).window
    )
    with pytest.raises(ArgumentError, match="got Linear"):
        spec_of(torch.nn.Linear(1, 1))


def test_identity_is_only_for_single_elements() -> None:
    spec = preset("paddle.BatchNorm")
    assert spec.one_sample is OneSample.IDENTITY
    assert forward(spec, [[1.0], [3.0]], [2.0]).ravel() == pytest.approx([-2, 2], abs=1e-4)
