"""ONNX: nodes with attributes, and constants for their inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from traindx.messages import say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import Content
from traindx.norm.convert.formats import onnx as onnx_files
from traindx.norm.convert.frameworks.framework import Found, Framework, Hints, Layer
from traindx.norm.convert.state import BIAS, WEIGHT, NormState, RefusedError
from traindx.norm.spec import NormSpec


def read(content: Content, hints: Hints) -> Found:
    """The layers of a model; it tells what they are, so hints are not needed."""
    del hints
    states = [
        NormState(name, told.spec, {role: content.read((name, role)) for role in told.roles})
        for name, told in content.told.items()
    ]
    return Found(states, content.refused)


def layer(state: NormState, channels: int | str) -> Layer:
    """The node for a state."""
    spec = state.spec
    if spec.eps and not np.float32(spec.eps) > 0:
        raise RefusedError(
            say(
                "its eps of {eps:g} is 0 in the float32 that ONNX keeps it in; train with a larger "
                "one",
                eps=spec.eps,
            )
        )
    if not state.arrays and spec.kind in ONNX_KINDS and spec.window is None:
        raise RefusedError(
            say(
                "ONNX gives it a scale for each channel, and how many there are is not known: give "
                "it a weight of ones, and export it anew"
            )
        )
    if spec.kind not in ONNX_KINDS:
        raise RefusedError(say("ONNX has no {kind}", kind=spec.kind))
    return Layer(onnx_files.kind_of(spec), (), _attributes(spec))


def _attributes(spec: NormSpec) -> dict[str, object]:
    found: dict[str, object] = {"epsilon": spec.eps}
    if spec.window is not None:
        size = spec.window.before + 1 + spec.window.after
        alpha = round(spec.window.alpha * size, 12)
        return {"size": size, "alpha": alpha, "beta": spec.window.beta, "bias": spec.window.k}
    if spec.running is not None:
        found["momentum"] = round(1 - (spec.running.momentum or 0.0), 12)
    if spec.groups is not None:
        found["num_groups"] = spec.groups.count
    if spec.kind in {"LayerNorm", "RMSNorm"}:
        found["axis"] = -len(spec.reduced.named)
    return found


def write(path: Path, states: Sequence[NormState]) -> None:
    """A model with a node for each layer."""
    onnx_files.write(path, [(state.name, state.spec, _completed(state)) for state in states])


def _completed(state: NormState) -> dict[str, Array]:
    """What a node must have: a scale of 1 and a bias of 0 where a layer has neither."""
    arrays = dict(state.arrays)
    if state.spec.kind == "LocalResponseNorm" or not arrays:
        return arrays
    like = next(iter(arrays.values()))
    arrays.setdefault(WEIGHT, np.ones(state.shape, like.dtype))
    if state.spec.kind != "RMSNorm":
        arrays.setdefault(BIAS, np.zeros(state.shape, like.dtype))
    return arrays


def run(state: NormState, x: Array) -> Array:
    """The output of onnxruntime."""
    runtime = import_module("onnxruntime")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "layer.onnx"
        write(file, [NormState("x", state.spec, state.arrays)])
        session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        return np.asarray(session.run(None, {"x.input": x})[0])


ONNX_KINDS = {
    "BatchNorm": "onnx.BatchNormalization",
    "LayerNorm": "onnx.LayerNormalization",
    "GroupNorm": "onnx.GroupNormalization",
    "InstanceNorm": "onnx.InstanceNormalization",
    "RMSNorm": "onnx.RMSNormalization",
    "LocalResponseNorm": "onnx.LRN",
}
ONNX = Framework(
    "onnx",
    ONNX_KINDS,
    1,
    (".onnx",),
    ("onnx", "onnxruntime"),
    read,
    layer,
    write,
    run,
    names=lambda name: name or "normalization",
)
