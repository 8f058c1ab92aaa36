"""What two layers do otherwise: every answer has its explanation, and its numbers are right."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, cast, get_type_hints

import numpy as np
import pytest

from traindx.norm import spec as specs
from traindx.norm.choices import EpsPlacement, GroupOrder
from traindx.norm.explain.difference import Channels, Field, Given, Reach
from traindx.norm.explain.explaining import canonical, every_field, explain
from traindx.norm.explain.running import batches_remembered
from traindx.norm.explain.scaling import divisor
from traindx.norm.layers import batch_norm, local_response_norm
from traindx.norm.presets import PRESETS, preset
from traindx.norm.reference import RunningStats, evaluate, forward, updated
from traindx.norm.spec import (
    Axes,
    Groups,
    Mask,
    NormSpec,
    Renorm,
    Running,
    Spectral,
    Window,
)

TORCH, KERAS = preset("torch.BatchNorm2d"), preset("keras.BatchNormalization")
FULL = NormSpec(
    kind="Everything",
    reduced=Axes((0,)),
    affine=Axes((1,)),
    running=Running(specs.Estimator.BIASED, 0.1),
    groups=Groups(1, count=2),
    renorm=Renorm(0.1, 2.0, 1.0),
    window=Window(1, 1, 1e-4, 0.75, 1.0),
    spectral=Spectral(),
    mask=Mask(0.5),
)
"""A layer that has every part, though none has them all."""


def paths(kind: type = NormSpec, above: str = "") -> Iterator[str]:
    """Every answer of a specification, parts before what they hold."""
    hints = get_type_hints(kind)
    for one in fields(kind):
        path = f"{above}{one.name}"
        yield path
        inner = [t for t in getattr(hints[one.name], "__args__", ()) if is_dataclass(t)]
        for part in inner:
            if part is not Axes:
                yield from paths(cast(Any, part), f"{path}.")


def changed(value: Any) -> Any:
    """Another answer of the same kind."""
    match value:
        case Enum():
            return next(member for member in type(value) if member is not value)
        case bool():
            return not value
        case str():
            return value + "s"
        case Axes():
            return Axes((2,), others=not value.others)
        case int():
            return value + 1
        case float():
            return value / 2 + 0.125
        case _:
            return None  # a part is taken away


def with_answer(spec: Any, path: str) -> Any:
    """The specification with one answer changed."""
    name, _, rest = path.partition(".")
    own = getattr(spec, name)
    if name == "size":  # a count and a size exclude each other
        return replace(spec, count=None, size=3)
    return replace(spec, **{name: with_answer(own, rest) if rest else changed(own)})


def test_every_answer_of_a_specification_has_an_explanation() -> None:
    assert sorted(field.path for field in every_field()) == sorted(paths())


@pytest.mark.parametrize("field", every_field(), ids=lambda field: field.path)
def test_a_changed_answer_is_told(field: Field) -> None:
    a = FULL
    if field.path == "groups.size":
        a = batch_norm(virtual_batch_size=2)
    elif field.path.startswith("window."):  # its sentence calls the layer itself
        a = local_response_norm(size=3)
    told = field.difference(a, with_answer(a, field.path), Given())
    assert told is not None
    assert told.field == field.path
    assert told.values[0] != told.values[1]
    assert field.difference(a, a, Given()) is None


def test_one_sentence_tells_of_a_window() -> None:
    a, b = local_response_norm(size=3), local_response_norm(size=5, beta=0.5)
    assert [one.field for one in explain(a, b)] == ["window.before"]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_is_compared_with_every_other_of_its_kind(name: str) -> None:
    wanted = {k for k, v in PRESETS[name].options.items() if v is inspect.Parameter.empty}
    one = preset(name, **{key: 2 for key in wanted})
    for other in (TORCH, KERAS, preset("flax.LayerNorm"), preset("mlx.RMSNorm")):
        for a, b in ((one, other), (other, one)):
            for difference in explain(a, b, Given((name, "torch.BatchNorm2d"))):
                assert difference.said.effect.endswith((".", "!"))
                assert "{" not in difference.said.effect


def by_field(a: NormSpec, b: NormSpec, given: Given | None = None) -> dict[str, Any]:
    return {one.field: one for one in explain(a, b, given)}


def test_eps_is_told_for_the_users_own_variances() -> None:
    var = np.array([2.0, 1e-4, 0.5])
    given = Given(("a", "b"), [Channels("bn", np.zeros(3), var)])
    said = by_field(TORCH, KERAS, given)["eps"].said
    (worst,) = said.data["layers"]
    assert worst["channel"] == 1
    x = np.ones((2, 3))
    stats = RunningStats(np.zeros(3), var)
    same = replace(KERAS, running=TORCH.running, reduced=TORCH.reduced, affine=TORCH.affine)
    times = evaluate(same, stats, x)[0, 1] / evaluate(TORCH, stats, x)[0, 1]
    assert worst["output_times"] == pytest.approx(times, rel=1e-12)
    assert worst["output_times"] == pytest.approx(((1e-4 + 1e-5) / (1e-4 + 1e-3)) ** 0.5)
    assert "bn, channel 1" in said.numbers[0]


@pytest.mark.parametrize("placement", [p for p in EpsPlacement if p is not EpsPlacement.NONE])
def test_a_divisor_is_what_the_reference_divides_by(placement: EpsPlacement) -> None:
    var = np.array([0.01, 0.2, 4.0])
    spec = replace(TORCH, eps_placement=placement, eps=0.3)
    y = evaluate(spec, RunningStats(np.zeros(3), var), np.ones((1, 3)))
    assert 1 / divisor((placement, 0.3), var) == pytest.approx(y.ravel())


def test_without_eps_the_divisor_is_the_root() -> None:
    assert divisor((EpsPlacement.NONE, 0.0), np.array([0.0, 4.0])) == pytest.approx([0.0, 2.0])
    a, b = preset("torch.weight_norm"), preset("flax.WeightNorm")
    assert {one.field for one in explain(a, b)} >= {"eps", "eps_placement"}


def test_the_memory_of_a_momentum_is_counted_in_batches() -> None:
    batches = round(batches_remembered(0.1))
    stats = RunningStats(np.ones(1), np.ones(1))
    for _ in range(batches):
        stats = updated(TORCH, stats, np.zeros((4, 1)))
    assert float(np.asarray(stats.mean)[0]) == pytest.approx(0.01, rel=0.06)


def test_a_momentum_read_by_the_other_convention_is_told() -> None:
    names = ("torch.BatchNorm2d", "keras.BatchNormalization")
    said = by_field(TORCH, KERAS, Given(names))["running.momentum"].said
    assert said.data["misread_new_weight"] == pytest.approx(0.9)
    assert "write 0.9" in said.numbers[-1]
    same = by_field(TORCH, preset("torch.BatchNorm2d", momentum=0.2))
    assert "misread_new_weight" not in same["running.momentum"].said.data


def test_estimators_are_told_for_the_users_own_batch() -> None:
    said = by_field(TORCH, KERAS, Given(elements=4))["running.variance"].said
    assert said.data == {"elements": [4], "variance_times": [0.75]}
    x = np.random.default_rng(0).normal(size=(4, 2))
    fresh = RunningStats(np.zeros(2), np.zeros(2))
    torch = preset("torch.BatchNorm2d", momentum=1.0)
    keras = preset("keras.BatchNormalization", momentum=1.0, axis=1)
    one, other = (np.asarray(updated(spec, fresh, x).var) for spec in (torch, keras))
    assert other / one == pytest.approx(0.75)


def test_an_even_window_is_told_with_what_comes_out() -> None:
    settings = {"size": 2, "alpha": 2.0, "beta": 1.0}
    a = preset("torch.LocalResponseNorm", **settings)
    b = preset("onnx.LRN", **settings)
    one = by_field(a, b)["window.before"]
    torch_output, onnx_output = one.said.data["outputs"]  # facts: measured
    assert torch_output == pytest.approx([0.5, 0.333333, 0.214286], abs=1e-6)
    assert onnx_output == pytest.approx([0.166667, 0.142857, 0.3], abs=1e-6)
    assert one.reach is Reach.OUTPUT


def test_the_offset_of_gemma_is_what_is_added() -> None:
    gemma = preset("transformers.GemmaRMSNorm")
    given = Given(layers=[Channels("norm", weight=np.array([-0.1, 0.1, 0.3]))])
    said = by_field(gemma, preset("torch.RMSNorm"), given)["weight_offset"].said
    assert said.data["add_to_weight"] == 1.0
    assert "acts as 1.1, and copied as it is as 0.1" in said.numbers[0]


def test_groups_of_another_order_change_the_output() -> None:
    mlx, torch = preset("mlx.GroupNorm", num_groups=2), preset("torch.GroupNorm", num_groups=2)
    one = by_field(mlx, torch)["groups.order"]
    assert one.reach is Reach.OUTPUT
    assert one.values == (GroupOrder.INTERLEAVED.value, GroupOrder.BLOCKED.value)
    assert one.said.data["groups"] == [[0, 1, 0, 1, 0, 1], [0, 0, 0, 1, 1, 1]]


def test_one_pass_is_told_for_the_users_own_means() -> None:
    given = Given(layers=[Channels("bn", np.array([0.0, 500.0]), np.array([1.0, 0.25]))])
    said = by_field(TORCH, preset("flax.BatchNorm"), given)["passes"].said
    assert said.data["mean_over_std"] == pytest.approx(1000)
    assert "bn, channel 1" in said.numbers[0]


def test_the_furthest_felt_comes_first() -> None:
    order = [list(Reach).index(one.reach) for one in explain(TORCH, KERAS)]
    assert order == sorted(order)
    assert explain(TORCH, KERAS)[0].field == "eps"


def test_a_group_for_every_channel_is_instance_norm() -> None:
    keras = preset("keras.GroupNormalization", num_groups=-1, axis=1, eps=1e-5)
    told = explain(preset("torch.InstanceNorm2d"), keras)
    assert {one.reach for one in told} == {Reach.EDGE}
    x = np.random.default_rng(0).normal(size=(2, 4, 3))
    assert np.allclose(forward(canonical(keras), x), forward(keras, x), rtol=1e-14)
