"""Whole files from each framework to each, read again and proved; and what is not proved."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.norm.convert.layers import (
    FILES,
    KINDS,
    NONE,
    every,
    hints,
    numbers,
    state,
    written,
)
from traindx.errors import UsageError
from traindx.norm.convert.carrying import Wish
from traindx.norm.convert.converting import Conversion, Order, convert
from traindx.norm.convert.frameworks import catalog
from traindx.norm.convert.frameworks.catalog import FRAMEWORKS
from traindx.norm.convert.frameworks.framework import Found
from traindx.norm.convert.mapping import hint, rename, renamed
from traindx.norm.convert.purpose import Purpose
from traindx.norm.convert.state import NormState
from traindx.norm.presets import preset


def moved(source: str, states: list[NormState], target: str, **settings: Any) -> Conversion:
    order = Order(FRAMEWORKS[target], **{"frameworks": False, **settings})
    return convert(FRAMEWORKS[source], Found(states), order)


@pytest.mark.parametrize("source", list(FRAMEWORKS))
@pytest.mark.parametrize(("target", "suffix"), FILES)
def test_every_direction_is_proved(tmp_path: Path, source: str, target: str, suffix: str) -> None:
    states = every(source)
    path = written(source, FRAMEWORKS[source].suffixes[0], tmp_path, states)
    own, found = catalog.read(path, source, hints(states))
    assert {one.spec.kind for one in found.states} == set(KINDS)
    out = tmp_path / f"out{suffix}"
    made = convert(own, found, Order(FRAMEWORKS[target], out=out, frameworks=False))
    assert not made.refused
    assert made.saved == str(out)
    assert [proof.by for proof in made.proofs] == ["reference"] * len(KINDS)
    assert all(proof.holds for proof in made.proofs)
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, out.name])


def test_torch_itself_is_asked_where_it_is_on_both_sides() -> None:
    made = moved("torch", every("torch"), "torch", frameworks=True)
    asked = [proof for proof in made.proofs if proof.by == "torch, torch"]
    assert len(asked) == len(KINDS)
    assert all(proof.difference == 0 for proof in asked)


@pytest.mark.parametrize("target", list(FRAMEWORKS))
def test_training_goes_on_as_it_was(target: str) -> None:
    wish = Wish(Purpose.TRAINING, elements=24, batches=5)
    made = moved("linen", [state("linen", "BatchNorm", momentum=0.2)], target, wish=wish)
    back = moved("torch", [state("torch", "BatchNorm", momentum=0.2)], target, wish=wish)
    for proofs in (made.proofs, back.proofs):
        assert [proof.by for proof in proofs] == ["training"]
        assert all(proof.holds for proof in proofs)


def test_weight_norm_goes_to_linen_and_back(tmp_path: Path) -> None:
    draw = np.random.default_rng(0).normal
    arrays = {
        "weight": draw(size=4).astype(np.float32),
        "direction": draw(size=(4, 3, 2)).astype(np.float32),
    }
    one = NormState("a.fc", preset("torch.weight_norm"), arrays)
    out = tmp_path / "w.msgpack"
    made = moved("torch", [one], "linen", out=out)
    assert all(proof.holds for proof in made.proofs)
    _, found = catalog.read(out, None, NONE)
    (back,) = found.states
    assert back.name == "a.fc"
    again = moved("linen", [back], "torch", out=tmp_path / "w.pt")
    _, found = catalog.read(tmp_path / "w.pt", None, NONE)
    assert again.saved
    for role, values in arrays.items():
        assert np.array_equal(found.states[0].arrays[role], values)


def spectral(steps: int) -> NormState:
    """A weight with vectors after some power iterations."""
    draw = np.random.default_rng(1).normal
    kernel = draw(size=(4, 6))
    u, v = draw(size=4), draw(size=6)
    for _ in range(steps):
        u = kernel @ v
        u /= np.linalg.norm(u)
        v = kernel.T @ u
        v /= np.linalg.norm(v)
    arrays = {"kernel": kernel, "u": u, "v": v}
    return NormState("fc", preset("torch.spectral_norm"), arrays)


def test_spectral_norm_goes_to_linen_once_it_rests(tmp_path: Path) -> None:
    made = moved("torch", [spectral(400)], "linen", out=tmp_path / "w.msgpack")
    assert made.saved
    early = moved("torch", [spectral(1)], "linen", out=tmp_path / "v.msgpack")
    assert "has not come to rest" in early.refused["fc"]
    assert os.listdir(tmp_path) == ["w.msgpack"]
    _, found = catalog.read(tmp_path / "w.msgpack", None, NONE)
    assert "keeps u without v" in found.refused["fc"]


class Wrong:
    """Writers that make one mistake each."""

    @staticmethod
    def scaled(path: Path, states: list[NormState]) -> None:
        FRAMEWORKS["onnx"].writes(path, [_with(s, "running_var", 1.01) for s in states])

    @staticmethod
    def swapped(path: Path, states: list[NormState]) -> None:
        turned = [
            replace(s, arrays={**s.arrays, "weight": s.arrays["bias"], "bias": s.arrays["weight"]})
            for s in states
        ]
        FRAMEWORKS["onnx"].writes(path, turned)

    @staticmethod
    def forgotten(path: Path, states: list[NormState]) -> None:
        FRAMEWORKS["onnx"].writes(path, [])

    @staticmethod
    def other_eps(path: Path, states: list[NormState]) -> None:
        specs = [replace(s, spec=replace(s.spec, eps=1e-5)) for s in states]
        FRAMEWORKS["onnx"].writes(path, specs)


def _with(one: NormState, role: str, factor: float) -> NormState:
    values: Mapping[str, Any] = {**one.arrays, role: one.arrays[role] * np.float32(factor)}
    return replace(one, arrays=values)


@pytest.mark.parametrize(
    ("mistake", "why"),
    [
        *(
            (mistake, "times what rounding allows")
            for mistake in ("scaled", "swapped", "other_eps")
        ),
        ("forgotten", "does not hold it"),
    ],
)
def test_a_mistake_in_the_written_file_is_not_given_out(
    tmp_path: Path, mistake: str, why: str
) -> None:
    target = replace(FRAMEWORKS["onnx"], writes=getattr(Wrong, mistake))
    order = Order(target, out=tmp_path / "w.onnx", frameworks=False)
    made = convert(FRAMEWORKS["torch"], Found([state("torch", "BatchNorm")]), order)
    assert why in made.refused["block.batchnorm"]
    assert os.listdir(tmp_path) == []


def test_one_refused_layer_keeps_the_whole_file_from_being_written(tmp_path: Path) -> None:
    bad = state("torch", "BatchNorm", momentum=None)
    states = [state("torch", "LayerNorm"), bad]
    made = moved("torch", states, "linen", out=tmp_path / "w.msgpack")
    assert (list(made.refused), made.proofs, made.saved) == ([bad.name], (), "")
    assert os.listdir(tmp_path) == []
    left = moved("torch", states, "linen", left_out=["*.batchnorm"], out=tmp_path / "w.msgpack")
    assert (left.left_out, left.saved) == ([bad.name], str(tmp_path / "w.msgpack"))


def test_what_cannot_be_done_is_told(tmp_path: Path) -> None:
    states = [state("torch", "BatchNorm"), state("torch", "LayerNorm")]
    with pytest.raises(UsageError, match="Two layers would both be called norm"):
        moved("torch", states, "onnx", renames=[("*", "norm")])
    with pytest.raises(UsageError, match=r"ends in one of \.onnx; got `w\.pt`"):
        moved("torch", states, "onnx", out=tmp_path / "w.pt")
    with pytest.raises(UsageError, match="Every normalization layer was left out"):
        moved("torch", states, "onnx", left_out=["*"])
    with pytest.raises(UsageError, match="no normalization layer to convert among 3 arrays"):
        convert(FRAMEWORKS["torch"], Found([], {}, 3), Order(FRAMEWORKS["onnx"]))
    with pytest.raises(UsageError, match="Cannot write"):
        moved("torch", states, "onnx", out=tmp_path / "none" / "w.onnx")
    broken = state("torch", "BatchNorm")
    broken.arrays["running_var"][0] = np.nan
    with pytest.raises(UsageError, match=r"`block\.batchnorm` cannot be converted"):
        moved("torch", [broken], "onnx")


def test_a_dry_run_writes_and_proves_nothing(tmp_path: Path) -> None:
    made = moved("torch", every("torch"), "linen", out=tmp_path / "w.msgpack", dry=True)
    assert len(made.layers) == len(KINDS)
    assert (made.proofs, made.saved, os.listdir(tmp_path)) == ((), "", [])


def test_names_are_changed_by_the_first_rule_that_fits() -> None:
    rules = [rename("layer*.bn*=stage*/norm_*"), rename("*=other.*")]
    assert renamed("layer1.0.bn2", rules) == "stage1.0/norm_2"
    assert renamed("head", rules) == "other.head"
    for wrong in ("a", "=b", "a=", "a=b*"):
        with pytest.raises(UsageError, match="OLD=NEW"):
            rename(wrong)


def test_a_hint_names_a_preset_with_options() -> None:
    found = hint("ln*=torch.LayerNorm,eps=1e-6")
    assert (found.pattern, found.spec.eps, found.given) == ("ln*", 1e-6, ("eps",))
    for wrong in ("ln", "=torch.LayerNorm", "ln="):
        with pytest.raises(UsageError, match="PATTERN=PRESET"):
            hint(wrong)


def test_what_a_file_does_not_tell_is_asked_for(tmp_path: Path) -> None:
    states = [state("torch", "LayerNorm"), state("torch", "BatchNorm")]
    path = written("torch", ".safetensors", tmp_path, states)
    _, found = catalog.read(path, None, NONE)
    assert "--leave-out" in found.refused["block.layernorm"]
    (one,) = found.states
    assert (one.name, one.assumed) == ("block.batchnorm", ("eps", "momentum"))
    np.savez(tmp_path / "odd.npz", x=np.ones(3))
    with pytest.raises(UsageError, match="--from"):
        catalog.read(tmp_path / "odd.npz", None, NONE)


def test_half_numbers_stay_half(tmp_path: Path) -> None:
    arrays = {k: v.astype(np.float16) for k, v in numbers("BatchNorm").items()}
    one = NormState("bn", preset("torch.BatchNorm2d"), arrays)
    made = moved("torch", [one], "linen", out=tmp_path / "w.msgpack")
    assert made.saved
    _, found = catalog.read(tmp_path / "w.msgpack", None, NONE)
    assert {v.dtype for v in found.states[0].arrays.values()} == {np.dtype(np.float16)}


@pytest.mark.parametrize("axis", [3, -1, 1, -2])
def test_channels_are_found_on_whatever_axis_they_are(axis: int) -> None:
    spec = preset("keras.BatchNormalization", axis=axis)
    made = moved("keras", [NormState("bn", spec, numbers("BatchNorm"))], "torch", frameworks=True)
    assert [proof.holds for proof in made.proofs][:1] == [True]
    there = moved("torch", [state("torch", "BatchNorm")], "linen", wish=Wish(axis=axis))
    assert all(proof.holds for proof in there.proofs)


def test_a_counter_that_is_none_is_not_read(tmp_path: Path) -> None:
    one = state("torch", "BatchNorm")
    path = written("torch", ".npz", tmp_path, [replace(one, batches=None)])
    arrays: dict[str, Any] = dict(np.load(path))
    arrays["block.batchnorm.num_batches_tracked"] = np.array(np.nan)
    np.savez(path, **arrays)
    assert catalog.read(path, None, NONE)[1].states[0].batches is None


def test_a_layer_without_weights_is_no_part_of_a_keras_file(tmp_path: Path) -> None:
    bare = replace(state("torch", "InstanceNorm"), arrays={})
    with pytest.raises(UsageError, match=r"has no weights.*leave it out"):
        moved("torch", [bare], "keras", out=tmp_path / "m.keras")
    assert os.listdir(tmp_path) == []


def test_what_the_file_alone_does_not_tell_is_noted() -> None:
    (one,) = moved("torch", [spectral(400)], "linen").layers
    assert "proved is what was given to its writer" in str(one.notes[-1])
    assert not moved("torch", [state("torch", "LayerNorm")], "linen").layers[0].notes


def test_a_layer_within_an_array_of_another_is_refused(tmp_path: Path) -> None:
    outer = replace(state("torch", "BatchNorm"), name="bn")
    inner = replace(outer, name="bn.scale")
    with pytest.raises(UsageError, match=r"`bn.scale.scale` would be in an array.*--rename"):
        moved("torch", [outer, inner], "nnx", out=tmp_path / "w.msgpack")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a\0b", "half\udcff"])
def test_a_name_that_no_file_can_hold_is_refused(tmp_path: Path, name: str) -> None:
    one = replace(state("torch", "BatchNorm"), name=name)
    with pytest.raises(UsageError, match=r"no file can hold.*--rename") as told:
        moved("torch", [one], "torch", out=tmp_path / "w.npz")
    assert str(told.value).isprintable()


def test_a_layer_of_settings_alone_is_moved(tmp_path: Path) -> None:
    lrn = NormState("lrn", preset("onnx.LRN", size=3), {})
    path = written("onnx", ".onnx", tmp_path, [lrn])
    own, found = catalog.read(path, None, NONE)
    made = convert(own, found, Order(FRAMEWORKS["torch"], frameworks=False))
    assert [one.after.spec.window for one in made.layers] == [lrn.spec.window]
    assert [proof.holds for proof in made.proofs] == [True]


@pytest.mark.parametrize(("target", "suffix"), FILES)
def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, target: str, suffix: str) -> None:
    out = tmp_path / "gone" / f"w{suffix}"
    with pytest.raises(UsageError, match=r"Cannot write `.*gone.*No such file"):
        moved("torch", [state("torch", "BatchNorm")], target, out=out)
