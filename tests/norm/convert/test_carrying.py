"""What a layer becomes in another framework, what is told of it, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.norm.convert.layers import C, numbers, same, state
from traindx.norm.convert.carrying import Wish, carry
from traindx.norm.convert.frameworks.catalog import FRAMEWORKS
from traindx.norm.convert.purpose import Purpose
from traindx.norm.convert.state import NormState, RefusedError, UnsoundError
from traindx.norm.presets import preset
from traindx.norm.reference import forward

OTHERS = ("linen", "nnx", "keras", "onnx")
TRAINING = Wish(Purpose.TRAINING, elements=8, batches=3)


def carried(one: NormState, target: str, wish: Wish | None = None) -> Any:
    return carry(one, FRAMEWORKS[target], wish or Wish())


@pytest.mark.parametrize("target", OTHERS)
def test_eps_and_momentum_travel_and_numbers_stay(target: str) -> None:
    one = state("torch", "BatchNorm", momentum=0.07)
    after = carried(one, target).after
    assert after.spec.eps == 3e-4
    assert after.spec.running.momentum == 0.07
    assert same(after.arrays, one.arrays)
    named = FRAMEWORKS[target].layer(after, C).named
    assert named["momentum"] == 0.93  # the old value's weight, as these frameworks have it
    assert named["epsilon"] == 3e-4


@pytest.mark.parametrize("source", OTHERS)
def test_momentum_comes_back_as_the_weight_of_the_new_value(source: str) -> None:
    one = state(source, "BatchNorm", momentum=0.07)
    after = carried(one, "torch").after
    assert FRAMEWORKS["torch"].layer(after, C).named["momentum"] == 0.07
    assert after.batches is None


def test_channels_go_to_the_targets_usual_axis_or_where_the_user_wants_them() -> None:
    one = state("torch", "BatchNorm")
    assert carried(one, "keras").after.spec.running.axes.named == (-1,)
    assert carried(one, "keras", Wish(axis=1)).after.spec.running.axes.named == (1,)


@pytest.mark.parametrize("target", OTHERS)
def test_momentum_none_is_refused_unless_one_is_named(target: str) -> None:
    one = state("torch", "BatchNorm", momentum=None)
    with pytest.raises(RefusedError, match=r"averages all batches equally.*--momentum 0\.1"):
        carried(one, target)
    assert carried(one, target, Wish(momentum=0.2)).after.spec.running.momentum == 0.2


def test_momentum_none_stays_in_torch_with_its_counter() -> None:
    one = state("torch", "BatchNorm", momentum=None)
    after = carried(one, "torch").after
    assert (after.spec.running.momentum, after.batches) == (None, 17)


def test_the_estimator_is_told_for_evaluation_and_converted_for_training() -> None:
    one = state("torch", "BatchNorm", momentum=0.07)
    told = carried(one, "keras")
    assert same(told.after.arrays, one.arrays)
    assert "biased variances are averaged now, which are var / (n - 1) smaller" in told.notes[0]
    back = carried(state("keras", "BatchNorm"), "torch")
    assert "unbiased variances are averaged now, which are var / (n - 1) greater" in back.notes[0]
    after = carried(one, "keras", TRAINING).after
    expected = one.arrays["running_var"] * 7 / 8
    assert np.allclose(after.arrays["running_var"], expected, rtol=1e-7)


def test_missing_counts_are_refused_where_training_goes_on() -> None:
    with pytest.raises(RefusedError, match=r"unbiased variances.*--elements"):
        carried(state("torch", "BatchNorm"), "keras", Wish(Purpose.TRAINING))
    with pytest.raises(RefusedError, match=r"how many batches.*--batches"):
        carried(state("keras", "BatchNorm"), "torch", Wish(Purpose.TRAINING, elements=8))
    assert carried(state("keras", "BatchNorm"), "torch", TRAINING).after.batches == 3


def test_without_a_counter_none_is_made_up() -> None:
    told = carried(state("linen", "BatchNorm"), "torch")
    assert told.after.batches is None
    assert any("counter of batches is left out" in note for note in told.notes)


@pytest.mark.parametrize("target", OTHERS)
def test_an_even_window_goes_nowhere(target: str) -> None:
    spec = preset("torch.LocalResponseNorm", size=4)
    with pytest.raises(RefusedError, match=r"even size|has no LocalResponseNorm"):
        carried(NormState("lrn", spec, {}), target)


def test_an_odd_window_goes_to_onnx_with_its_numbers() -> None:
    spec = preset("torch.LocalResponseNorm", size=5, alpha=2e-3, beta=0.6, k=1.5)
    after = carried(NormState("lrn", spec, {}), "onnx").after
    expected = {"size": 5, "alpha": 2e-3, "beta": 0.6, "bias": 1.5}
    assert FRAMEWORKS["onnx"].layer(after, "C").named == expected
    x = np.random.default_rng(0).normal(size=(2, 7, 3, 3))
    assert np.allclose(forward(after.spec, x), forward(spec, x), rtol=1e-12)


@pytest.mark.parametrize("target", OTHERS)
def test_a_tracked_instance_norm_stays_in_torch(target: str) -> None:
    spec = preset("torch.InstanceNorm2d", variance="unbiased", momentum=0.1)
    one = NormState("i", spec, numbers("BatchNorm"))
    with pytest.raises(RefusedError, match="InstanceNorm does in torch alone"):
        carried(one, target)


def test_interleaved_groups_are_refused() -> None:
    one = NormState("g", preset("mlx.GroupNorm", num_groups=2), numbers("GroupNorm"))
    with pytest.raises(RefusedError, match="reorder the channels"):
        carried(one, "torch")


def test_a_weight_for_each_group_is_refused() -> None:
    one = NormState("g", preset("onnx.GroupNormalization-18", num_groups=6), numbers("GroupNorm"))
    with pytest.raises(RefusedError, match="opset 21"):
        carried(one, "torch")


def test_the_offset_of_gemma_is_added_to_the_weight() -> None:
    one = NormState("n", preset("transformers.GemmaRMSNorm"), numbers("RMSNorm"))
    told = carried(one, "linen")
    assert np.array_equal(told.after.arrays["weight"], one.arrays["weight"] + np.float32(1))
    assert told.after.spec.weight_offset == 0
    assert "1 was added to its weight" in told.notes[0]


def test_eps_none_of_rms_norm_is_written_as_that_of_float32() -> None:
    one = NormState("n", preset("torch.RMSNorm"), numbers("RMSNorm"))
    told = carried(one, "keras")
    assert told.after.spec.eps == float(np.finfo(np.float32).eps)
    assert "1.192e-07" in told.notes[0]


def test_a_missing_bias_is_added_where_torch_has_both() -> None:
    arrays = {k: v for k, v in numbers("BatchNorm").items() if k != "bias"}
    told = carried(NormState("b", preset("flax.BatchNorm"), arrays), "torch")
    assert told.after.arrays["bias"].tolist() == [0] * C
    assert any("freeze it" in note for note in told.notes)
    kept = carried(NormState("b", preset("flax.BatchNorm"), arrays), "keras").after
    assert FRAMEWORKS["keras"].layer(kept, C).named["center"] is False


def test_a_layer_over_other_axes_than_the_last_is_refused() -> None:
    spec = preset("keras.LayerNormalization")
    moved = replace(spec, reduced=replace(spec.reduced, named=(1,)))
    with pytest.raises(RefusedError, match="transpose before and after"):
        carried(NormState("l", moved, numbers("LayerNorm")), "torch")


def test_several_axes_go_to_linen_and_not_to_nnx() -> None:
    draw = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    spec = preset("torch.LayerNorm", normalized_ndim=2)
    one = NormState("l", spec, {"weight": draw, "bias": draw + 1})
    after = carried(one, "linen").after
    assert FRAMEWORKS["linen"].layer(after, 20).named["reduction_axes"] == (-2, -1)
    with pytest.raises(RefusedError, match="weights of one axis"):
        carried(one, "nnx")


def test_an_eps_that_float32_does_not_have_is_refused_by_onnx() -> None:
    with pytest.raises(RefusedError, match="is 0 in the float32"):
        carried(state("torch", "BatchNorm", eps=1e-50), "onnx")


def test_a_batch_norm_without_statistics_is_refused() -> None:
    one = NormState("b", preset("torch.BatchNorm2d"), numbers("LayerNorm"))
    with pytest.raises(RefusedError, match="keeps no running statistics"):
        carried(one, "keras")


@pytest.mark.parametrize(
    ("role", "place", "value", "words"),
    [
        ("running_mean", 1, np.nan, "its running_mean is nan at index 1"),
        ("running_var", 2, np.inf, "its running_var is inf at index 2"),
        ("running_var", 3, -0.5, "its running_var is -0.5 at index 3"),
        ("weight", 0, np.nan, "its weight is nan at index 0"),
    ],
)
def test_numbers_without_an_answer_are_refused(
    role: str, place: int, value: float, words: str
) -> None:
    one = state("torch", "BatchNorm")
    one.arrays[role][place] = value
    with pytest.raises(UnsoundError, match=words):
        carried(one, "keras")


def test_shapes_that_do_not_fit_and_whole_numbers_are_refused() -> None:
    arrays = numbers("BatchNorm")
    spec = preset("torch.BatchNorm2d")
    with pytest.raises(UnsoundError, match=r"its running_var has shape \(2,\)"):
        carried(NormState("b", spec, {**arrays, "running_var": np.ones(2, np.float32)}), "keras")
    with pytest.raises(UnsoundError, match="whole numbers"):
        carried(NormState("b", spec, {**arrays, "bias": np.ones(C, np.int64)}), "keras")


def test_a_group_for_every_channel_goes_as_instance_norm() -> None:
    spec = preset("keras.GroupNormalization", num_groups=-1)
    after = carried(NormState("g", spec, numbers("GroupNorm")), "torch").after
    assert (
        FRAMEWORKS["torch"].layer(after, C).code == "nn.InstanceNorm2d(6, eps=0.001, affine=True)"
    )


def test_axes_that_no_input_has_are_refused() -> None:
    one = NormState("b", preset("keras.BatchNormalization", axis=100), numbers("BatchNorm"))
    with pytest.raises(RefusedError, match="normalizes the axes 100"):
        carried(one, "torch")
