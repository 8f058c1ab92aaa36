"""Flax nnx: `scale`, `bias`, `mean` and `var` beside each other, as `nnx.to_pure_dict` has them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from traindx.messages import say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import Content, path_of
from traindx.norm.convert.formats import msgpack, npz, safetensors
from traindx.norm.convert.frameworks.framework import Found, Framework, Hints, Layer
from traindx.norm.convert.frameworks.linen import NAMING, PRESETS, ROLES, named
from traindx.norm.convert.frameworks.reading import read_tree
from traindx.norm.convert.state import NormState, RefusedError

_LEAVES = {role: leaf for leaf, role in ROLES.items()}


def read(content: Content, hints: Hints) -> Found:
    """The layers of a pure dict; an older one has each array under `value`."""
    names = {(name[:-1] if name[-1] == "value" else name): name for name in content.arrays}
    return read_tree(content, names, NAMING, hints)


def layer(state: NormState, channels: int | str) -> Layer:
    """The layer of nnx for a state."""
    spec = state.spec
    if len(state.shape) > 1:
        raise RefusedError(
            say(
                "it normalizes {n} axes with a weight of shape {shape}, and nnx has weights of one "
                "axis; move it to linen",
                n=len(state.shape),
                shape=state.shape,
            )
        )
    match spec.kind:
        case "BatchNorm":
            more: dict[str, object] = {"use_running_average": True}
            return Layer("nnx.BatchNorm", (channels,), {**more, **named(state)})
        case "GroupNorm":
            assert spec.groups is not None
            return Layer("nnx.GroupNorm", (channels, spec.groups.count), named(state))
        case "LayerNorm" | "InstanceNorm" | "RMSNorm":
            return Layer(f"nnx.{spec.kind}", (channels,), named(state))
        case _:
            raise RefusedError(say("nnx has no {kind}", kind=spec.kind))


def write(path: Path, states: Sequence[NormState]) -> None:
    """A pure dict with the layers."""
    arrays = {
        (*path_of(state.name), _LEAVES[role]): values
        for state in states
        for role, values in state.arrays.items()
    }
    writers: dict[str, Any] = {".safetensors": safetensors.write, ".npz": npz.write}
    writers.get(path.suffix, msgpack.write)(path, arrays, note="flax")


def run(state: NormState, x: Array) -> Array:
    """The output of nnx in evaluation."""
    nnx = import_module("flax.nnx")
    made = layer(state, x.shape[-1])
    module = getattr(nnx, state.spec.kind)(*made.positional, **made.named, rngs=nnx.Rngs(0))
    graph, fresh = nnx.split(module)
    nnx.replace_by_pure_dict(fresh, {_LEAVES[r]: np.asarray(v) for r, v in state.arrays.items()})
    return np.asarray(nnx.merge(graph, fresh)(x))


NNX = Framework(
    "nnx",
    PRESETS,
    -1,
    (".msgpack", ".safetensors", ".npz"),
    ("flax", "jax"),
    read,
    layer,
    write,
    run,
)
