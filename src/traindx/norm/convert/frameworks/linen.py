"""Flax linen: `scale` and `bias` in the collection `params`, `mean` and `var` in `batch_stats`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from traindx.messages import Message, say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import LARGEST_KERNEL, Content, Name, path_of
from traindx.norm.convert.formats import msgpack, npz, safetensors
from traindx.norm.convert.frameworks.framework import Found, Framework, Hints, Layer
from traindx.norm.convert.frameworks.reading import Naming, read_tree
from traindx.norm.convert.state import (
    BIAS,
    DIRECTION,
    KERNEL,
    MEAN,
    VAR,
    WEIGHT,
    NormState,
    RefusedError,
    U,
    V,
)
from traindx.norm.presets import preset

COLLECTIONS = ("params", "batch_stats")
_KINDS = ("LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm")
_SCALE, _U, _SIGMA = "/kernel/scale", "/kernel/u", "/kernel/sigma"


def kind_of(fqn: str) -> str | None:
    """What a layer's name tells: Flax calls those that have none `LayerNorm_0`."""
    match = re.fullmatch(rf"({'|'.join(_KINDS)})(_\d+)?", fqn.rpartition(".")[2])
    return f"flax.{match[1]}" if match else None


ROLES = {"scale": WEIGHT, "bias": BIAS, "mean": MEAN, "var": VAR}
NAMING = Naming(ROLES, "flax.BatchNorm", kind_of, "scale", "flax.LayerNorm")
_LEAVES = {role: leaf for leaf, role in ROLES.items()}


def read(content: Content, hints: Hints) -> Found:
    """The layers of a tree of variables, by their paths in the model."""
    weights, refused, consumed = _wrapped(content)
    names = {
        name[1:] if name[0] in COLLECTIONS else name: name
        for name in content.arrays
        if name not in consumed
    }
    found = read_tree(content, names, NAMING, hints)
    return Found([*found.states, *weights], {**found.refused, **refused}, found.others)


def _wrapped(content: Content) -> tuple[list[NormState], dict[str, Message], set[Name]]:
    """Weight normalization by the scale of its wrapper; spectral normalization is refused."""
    states: list[NormState] = []
    refused: dict[str, Message] = {}
    consumed: set[Name] = set()
    for name in content.arrays:
        if name[-1].endswith(_SCALE):
            layer = name[-1][: -len(_SCALE)]
            kernel = (*name[:-2], layer, "kernel")
            if kernel in content.arrays:
                fqn = ".".join((*name[1:-2], layer))
                arrays = {
                    WEIGHT: content.read(name).reshape(-1),
                    DIRECTION: from_flax(content.read(kernel, LARGEST_KERNEL)),
                }
                states.append(NormState(fqn, preset("flax.WeightNorm"), arrays))
                consumed |= {name, kernel}
        elif name[-1].endswith((_U, _SIGMA)):
            fqn = ".".join((*name[1:-2], name[-1].split("/")[0]))
            refused[fqn] = say(
                "spectral normalization of Flax keeps u without v: what it divides by cannot be "
                "had again. Divide the kernel by its sigma and move it without the normalization"
            )
            consumed.add(name)
    return states, refused, consumed


def from_flax(kernel: Array) -> Array:
    """A kernel [*spatial, in, out] as [out, in, *spatial]."""
    return np.moveaxis(np.moveaxis(kernel, -1, 0), -1, 1)


def to_flax(kernel: Array) -> Array:
    """A kernel [out, in, *spatial] as [*spatial, in, out]."""
    return np.moveaxis(np.moveaxis(kernel, 0, -1), 0, -2)


def singular(state: NormState) -> float:
    """The singular value that torch divides by: u . W v."""
    kernel = state.arrays[KERNEL].astype(np.float64)
    matrix = kernel.reshape(kernel.shape[0], -1)
    return float(state.arrays[U].ravel() @ matrix @ state.arrays[V].ravel())


def arrays_of(state: NormState, number: int) -> dict[Name, Array]:
    """A state's arrays by their names in a tree of variables."""
    owner = path_of(state.name)
    if state.spec.kind == "WeightNorm":
        above, own = owner[:-1], owner[-1]
        return {
            ("params", *owner, "kernel"): to_flax(state.arrays[DIRECTION]),
            ("params", *above, f"WeightNorm_{number}", own + _SCALE): state.arrays[WEIGHT],
        }
    if state.spec.kind == "SpectralNorm":
        wrapper = ("batch_stats", *owner[:-1], f"SpectralNorm_{number}")
        kind = state.arrays[KERNEL].dtype
        return {
            ("params", *owner, "kernel"): to_flax(state.arrays[KERNEL]),
            (*wrapper, owner[-1] + _U): state.arrays[U].reshape(1, -1),
            (*wrapper, owner[-1] + _SIGMA): np.array(singular(state), kind),
        }
    return {
        ("batch_stats" if role in {MEAN, VAR} else "params", *owner, _LEAVES[role]): values
        for role, values in state.arrays.items()
    }


def named(state: NormState) -> dict[str, object]:
    """The arguments that linen and nnx share."""
    spec = state.spec
    found: dict[str, object] = {"epsilon": spec.eps}
    if spec.running is not None:
        assert spec.running.momentum is not None, "refused before"
        found["momentum"] = round(1 - spec.running.momentum, 12)
        (axis,) = spec.running.axes.named
        found |= {} if axis == -1 else {"axis": axis}
    if len(state.shape) > 1:
        axes = tuple(range(-len(state.shape), 0))
        found |= {"reduction_axes": axes, "feature_axes": axes}
    found |= {} if WEIGHT in state.arrays else {"use_scale": False}
    if BIAS not in state.arrays and spec.kind != "RMSNorm":
        found["use_bias"] = False
    return found


def layer(state: NormState, channels: int | str) -> Layer:
    """The layer of linen for a state; it learns its channels from its input."""
    spec = state.spec
    match spec.kind:
        case "BatchNorm":
            return Layer("nn.BatchNorm", (), {"use_running_average": True, **named(state)})
        case "GroupNorm":
            assert spec.groups is not None
            return Layer("nn.GroupNorm", (spec.groups.count,), named(state))
        case "LayerNorm" | "InstanceNorm" | "RMSNorm":
            return Layer(f"nn.{spec.kind}", (), named(state))
        case "WeightNorm" | "SpectralNorm":
            return Layer(f"nn.{spec.kind}", ("layer",))
        case _:
            raise RefusedError(say("Flax has no {kind}", kind=spec.kind))


def tree_of(states: Sequence[NormState]) -> dict[Name, Array]:
    """All layers in one tree; wrappers are numbered, as Flax does."""
    numbers: dict[tuple[str, str], int] = {}
    found: dict[Name, Array] = {}
    for state in states:
        place = (state.spec.kind, state.name.rpartition(".")[0])
        number = numbers.setdefault(place, 0)
        found |= arrays_of(state, number)
        numbers[place] += 1
    return found


def write(path: Path, states: Sequence[NormState]) -> None:
    """A tree of variables with the layers."""
    writers: dict[str, Any] = {".safetensors": safetensors.write, ".npz": npz.write}
    writers.get(path.suffix, msgpack.write)(path, tree_of(states), note="flax")


def run(state: NormState, x: Array) -> Array:
    """The output of linen in evaluation."""
    linen = import_module("flax.linen")
    made = layer(state, x.shape[-1])
    module = getattr(linen, state.spec.kind)(*made.positional, **made.named)
    variables: dict[str, dict[str, Array]] = {}
    for name, values in arrays_of(NormState("x", state.spec, state.arrays), 0).items():
        variables.setdefault(name[0], {})[name[-1]] = values
    return np.asarray(module.apply(variables, x))


PRESETS = {
    "BatchNorm": "flax.BatchNorm",
    "LayerNorm": "flax.LayerNorm",
    "GroupNorm": "flax.GroupNorm",
    "InstanceNorm": "flax.InstanceNorm",
    "RMSNorm": "flax.RMSNorm",
}
LINEN = Framework(
    "linen",
    {**PRESETS, "WeightNorm": "flax.WeightNorm", "SpectralNorm": "flax.SpectralNorm"},
    -1,
    (".msgpack", ".safetensors", ".npz"),
    ("flax", "jax"),
    read,
    layer,
    write,
    run,
)
