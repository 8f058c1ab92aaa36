"""Keras 3: `gamma`, `beta`, `moving_mean`, `moving_variance`, by their order in a layer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from traindx.errors import TraindxError
from traindx.messages import Message, say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import Content, Name
from traindx.norm.convert.formats import hdf5
from traindx.norm.convert.formats import keras as keras_files
from traindx.norm.convert.frameworks.framework import Found, Framework, Hints, Layer
from traindx.norm.convert.frameworks.linen import singular, to_flax
from traindx.norm.convert.frameworks.reading import assumed
from traindx.norm.convert.state import BIAS, KERNEL, MEAN, VAR, WEIGHT, NormState, RefusedError, U
from traindx.norm.presets import preset
from traindx.norm.spec import Axes, NormSpec

_SNAKE = {
    "batch_normalization": "BatchNormalization",
    "layer_normalization": "LayerNormalization",
    "group_normalization": "GroupNormalization",
    "rms_normalization": "RMSNormalization",
    "spectral_normalization": "SpectralNormalization",
}
_CLASSES = {name: snake for snake, name in _SNAKE.items()}
_ORDER = (WEIGHT, BIAS, MEAN, VAR)


def read(
    content: Content, hints: Hints, configs: Mapping[str, dict[str, Any]] | None = None
) -> Found:
    """The layers of a file of weights; with the model's configuration, what each is exactly."""
    groups: dict[Name, dict[int, Name]] = {}
    for name in content.arrays:
        if name[-1].isdigit():
            groups.setdefault(name[:-1], {})[int(name[-1])] = name
    states: list[NormState] = []
    refused: dict[str, Message] = {}
    taken = 0
    for place, variables in groups.items():
        fqn = place[-1] or ".".join(place[:-1])
        arrays = [variables[key] for key in sorted(variables)]
        try:
            state = _layer_of(content, fqn, place, arrays, hints, (configs or {}).get(fqn))
        except RefusedError as error:
            refused[fqn] = error.reason
            continue
        if state is not None:
            states.append(state)
            taken += len(arrays)
    return Found(states, refused, len(content.arrays) - taken)


def _layer_of(
    content: Content,
    fqn: str,
    place: Name,
    variables: Sequence[Name],
    hints: Hints,
    config: dict[str, Any] | None,
) -> NormState | None:
    kind = config["class_name"] if config else _by_group(place)
    if kind == "SpectralNormalization":
        raise RefusedError(
            say(
                "spectral normalization of Keras overwrites its kernel and keeps u alone: move the "
                "kernel as it is, without the normalization"
            )
        )
    hint = hints(fqn)
    if config is not None and kind in _CLASSES:
        spec, roles = _configured(kind, config["config"])
        defaults: tuple[str, ...] = ()
    elif hint is not None:
        spec, roles = hint.spec, _roles_of(hint.spec, len(variables))
        defaults = assumed(spec, hint.given)
    elif kind in _CLASSES:
        spec = _default(kind)
        roles = _roles_of(spec, len(variables))
        defaults = assumed(spec, ())
    else:
        return None
    if len(roles) != len(variables):
        raise RefusedError(
            say(
                "it has {n} variables, and its configuration speaks of {wanted}: which they are is "
                "not known",
                n=len(variables),
                wanted=len(roles),
            )
        )
    arrays = {role: content.read(name) for role, name in zip(roles, variables, strict=True)}
    return NormState(fqn, spec, arrays, None, defaults)


def _by_group(place: Name) -> str:
    """The class by the name of its group: `batch_normalization_2`."""
    last = place[-2] if len(place) > 1 else ""
    return _SNAKE.get(re.sub(r"_\d+$", "", last), "")


def _default(kind: str) -> NormSpec:
    return preset(f"keras.{kind}")


def _roles_of(spec: NormSpec, count: int) -> tuple[str, ...]:
    """Without a configuration the order tells only where all variables are there."""
    if spec.kind == "RMSNorm":
        return (WEIGHT,)
    full = _ORDER if spec.running else _ORDER[:2]
    if count < len(full):
        raise RefusedError(
            say(
                "it has {n} variables of {full}: whether its scale or its center is missing stands "
                "in the model's configuration; give the `.keras` file",
                n=count,
                full=len(full),
            )
        )
    return full


def _configured(kind: str, config: Mapping[str, Any]) -> tuple[NormSpec, tuple[str, ...]]:
    """What a configuration says: the specification, and which variables there are."""
    try:
        return _from(kind, config)
    except (TraindxError, TypeError, ValueError, KeyError) as error:
        raise RefusedError(
            say("its attributes make no layer ({why})", why=str(error)[:200])
        ) from error


def _from(kind: str, config: Mapping[str, Any]) -> tuple[NormSpec, tuple[str, ...]]:
    eps, axis = float(config["epsilon"]), config.get("axis", -1)
    axes = cast("list[Any]", axis if isinstance(axis, list) else [axis])
    named = [int(each) for each in axes]
    scale = [WEIGHT] if config.get("scale", True) else []
    center = [BIAS] if config.get("center", kind != "RMSNormalization") else []
    match kind:
        case "BatchNormalization":
            if config.get("renorm"):
                raise RefusedError(
                    say(
                        "Batch Renorm keeps statistics of its own (moving_stddev, renorm_mean, "
                        "renorm_stddev) that no other framework has; they would be lost"
                    )
                )
            momentum = round(1 - float(config["momentum"]), 12)
            spec = preset("keras.BatchNormalization", axis=named[0], eps=eps, momentum=momentum)
            return spec, (*scale, *center, MEAN, VAR)
        case "GroupNormalization":
            count = int(config["groups"])
            if count == -1:
                return preset("flax.InstanceNorm", axis=named[0], eps=eps), (*scale, *center)
            spec = preset("keras.GroupNormalization", num_groups=count, axis=named[0], eps=eps)
            return spec, (*scale, *center)
        case _:
            if config.get("rms_scaling"):
                raise RefusedError(
                    say(
                        "`rms_scaling=True` divides by the standard deviation without subtracting "
                        "the mean, which no other framework does; train with RMSNormalization"
                    )
                )
            return _last(preset(f"keras.{kind}", eps=eps), named), (*scale, *center)


def _last(spec: NormSpec, axes: Sequence[int]) -> NormSpec:
    """A layer over given axes, which are the last ones or not."""
    named = Axes(tuple(sorted(axes)))
    return replace(spec, reduced=named, affine=named)


# -- written --------------------------------------------------------------------------------------


def layer(state: NormState, channels: int | str) -> Layer:
    """Keras' own layer for a state; it learns its channels from its input."""
    spec = state.spec
    named: dict[str, object] = {}
    match spec.kind:
        case "BatchNorm":
            assert spec.running is not None
            assert spec.running.momentum is not None, "refused before"
            named = {"momentum": round(1 - spec.running.momentum, 12)}
            kind = "BatchNormalization"
        case "GroupNorm" | "InstanceNorm":
            named = {"groups": -1 if spec.groups is None else spec.groups.count}
            kind = "GroupNormalization"
        case "LayerNorm":
            kind = "LayerNormalization"
        case "RMSNorm":
            kind = "RMSNormalization"
        case "SpectralNorm":
            return Layer("layers.SpectralNormalization", ("layer",))
        case _:
            raise RefusedError(say("Keras has no {kind}", kind=spec.kind))
    named = {"axis": _axis(state), **named, "epsilon": spec.eps}
    if spec.kind != "RMSNorm":
        named |= {} if BIAS in state.arrays else {"center": False}
        named |= {} if WEIGHT in state.arrays else {"scale": False}
    elif WEIGHT not in state.arrays:
        raise RefusedError(say("Keras' RMSNormalization always has a scale; give it one of 1"))
    return Layer(f"layers.{kind}", (), named)


def _axis(state: NormState) -> object:
    spec = state.spec
    if spec.kind in {"LayerNorm", "RMSNorm"}:
        axes = list(spec.reduced.named)
        return axes if len(axes) > 1 else axes[0]
    assert spec.affine is not None
    return spec.affine.named[0]


def variables_of(state: NormState) -> list[Array]:
    """A state's arrays in the order of Keras."""
    if state.spec.kind == "SpectralNorm":
        kernel = to_flax(state.arrays[KERNEL])
        divided = (kernel / singular(state)).astype(kernel.dtype)
        return [divided, state.arrays[U].reshape(1, -1)]
    return [state.arrays[role] for role in _ORDER if role in state.arrays]


def layer_name(name: str) -> str:
    """A name as Keras takes it: on torch, it has no dots, and nowhere slashes."""
    return re.sub(r"[./]", "_", name) or "normalization"


def write(path: Path, states: Sequence[NormState]) -> None:
    """The weights of a model of these layers in this order; as `.keras` with the model itself."""
    weights = _groups(states)
    if path.suffix != ".keras":
        hdf5.write(path, weights)
        return
    if any(state.spec.kind == "SpectralNorm" for state in states):
        raise RefusedError(
            say(
                "a `.keras` file needs the layer that is spectrally normalized; write "
                "`.weights.h5` instead"
            )
        )
    bare = [state.name for state in states if not state.arrays]
    if bare:
        raise RefusedError(
            say(
                "`{name}` has no weights, so that a `.keras` file would not know its channels; "
                "leave it out, or write `.weights.h5`",
                name=bare[0],
            )
        )
    keras_files.write(path, weights, [_made(state) for state in states])


def _groups(states: Sequence[NormState]) -> dict[Name, tuple[str, list[Array]]]:
    """The variables of each layer in the group that Keras looks in: its class, numbered."""
    taken: Counter[str] = Counter()
    found: dict[Name, tuple[str, list[Array]]] = {}
    for state in states:
        group = _CLASSES[_class(state)]
        place = ("layers", f"{group}_{taken[group]}" if taken[group] else group)
        taken[group] += 1
        found[place] = (state.name, variables_of(state))
        if state.spec.kind == "SpectralNorm":
            found[(*place, "layer")] = (f"{state.name}_layer", variables_of(state)[:1])
    return found


def _class(state: NormState) -> str:
    return layer(state, state.channels).call.rpartition(".")[2]


def _made(state: NormState) -> tuple[str, dict[str, Any], tuple[int | None, ...]]:
    settings = {"name": state.name, **layer(state, state.channels).named}
    return _class(state), settings, _input_shape(state)


def _input_shape(state: NormState) -> tuple[int | None, ...]:
    """Batch, one more axis, and the channels where the layer has them."""
    if len(state.shape) > 1:
        return (None, None, *state.shape)
    axis = state.spec.affine.named[0] if state.spec.affine is not None else -1
    shape: list[int | None] = [None] * max(3, axis + 1)
    shape[axis] = state.channels or None
    return tuple(shape)


def run(state: NormState, x: Array) -> Array:
    """Keras' output in evaluation."""
    keras = import_module("keras")
    made = layer(state, x.shape[-1])
    module = getattr(keras.layers, made.call.rpartition(".")[2])(**made.named)
    module.build(x.shape)
    module.set_weights(variables_of(state))
    return np.asarray(keras.ops.convert_to_numpy(module(x, training=False)))


KERAS = Framework(
    "keras",
    {
        "BatchNorm": "keras.BatchNormalization",
        "LayerNorm": "keras.LayerNormalization",
        "GroupNorm": "keras.GroupNormalization",
        "InstanceNorm": "flax.InstanceNorm",
        "RMSNorm": "keras.RMSNormalization",
        "SpectralNorm": "keras.SpectralNormalization",
    },
    -1,
    (".weights.h5", ".keras"),
    ("keras",),
    read,
    layer,
    write,
    run,
    names=layer_name,
)
