"""ONNX's node tests and converted models, as its wheels up to 1.22 hold them.

The wheel is read as the archive it is; nothing of it is installed or run. An `*_expanded` case is
the same question, put to a function body: it takes its attributes from the case it expands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.norm.oracles.answers import Answer, compared
from traindx.norm.presets import preset
from traindx.norm.reference import RunningStats, evaluate, forward, statistics, updated

DATA = "onnx/backend/test/data"
RTOL, ATOL = 1e-3, 1e-7  # ONNX's own
_OPERATIONS = {
    "BatchNormalization",
    "GroupNormalization",
    "InstanceNormalization",
    "LRN",
    "LayerNormalization",
    "LpNormalization",
    "MeanVarianceNormalization",
    "RMSNormalization",
}


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of a graph."""

    kind: str
    inputs: tuple[str, ...]
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Model:
    """A graph and the version of its operations."""

    opset: int
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[str, Any]


def model(data: bytes) -> Model:
    """A ModelProto's graph."""
    read = ModelProto.FromString(data)
    return Model(
        next((one.version for one in read.opset_import if not one.domain), 1),
        tuple(Node(one.op_type, tuple(one.input), _settings(one)) for one in read.graph.node),
        tuple(one.name for one in read.graph.input),
        tuple(one.name for one in read.graph.output),
        {one.name: numpy_helper.to_array(one) for one in read.graph.initializer},
    )


def _settings(node: NodeProto) -> dict[str, Any]:
    found = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    return {
        key: v.decode("utf-8", "replace") if isinstance(v, bytes) else v for key, v in found.items()
    }


def answers(wheel: Path) -> Iterator[Answer]:
    """Ours to every normalization vector of a wheel."""
    archive = ZipFile(wheel)
    for path in sorted(archive.namelist()):
        case = re.fullmatch(rf"{DATA}/(node|pytorch-converted)/(test_\w+)/model\.onnx", path)
        if case is None:
            continue
        kind, name = case.groups()
        asked = _question(archive, kind, name)
        if asked is not None:
            yield _answer(archive, kind, name, *asked)


def _question(archive: ZipFile, kind: str, name: str) -> tuple[Model, Node] | None:
    direct = name.partition("_expanded")[0]
    path = f"{DATA}/{kind}/{direct}/model.onnx"
    if path not in archive.namelist():
        return None
    asked = model(archive.read(path))
    if len(asked.nodes) != 1 or asked.nodes[0].kind not in _OPERATIONS:
        return None
    return asked, asked.nodes[0]


def _answer(archive: ZipFile, kind: str, name: str, asked: Model, node: Node) -> Answer:
    folder = f"{DATA}/{kind}/{name}/test_data_set_0"
    given = dict(asked.constants)
    fed = [i for i in asked.inputs if i not in given]
    given |= {key: _read(archive, f"{folder}/input_{n}.pb") for n, key in enumerate(fed)}
    theirs = [_read(archive, f"{folder}/output_{n}.pb") for n in range(len(asked.outputs))]
    ours = _ours(node, asked.opset, [given[key] for key in node.inputs])
    source = {"pytorch-converted": "ONNX pytorch-converted"}.get(
        kind, "ONNX node, expanded" if "_expanded" in name else "ONNX node, direct"
    )
    return compared(source, name, zip(ours, theirs, strict=False), rtol=RTOL, atol=ATOL)


def _read(archive: ZipFile, path: str) -> Any:
    return numpy_helper.to_array(TensorProto.FromString(archive.read(path)))


def _ours(node: Node, opset: int, inputs: list[Any]) -> list[Any]:
    """The outputs, in the order of the operation's."""
    x, *parameters = inputs
    options = {} if "epsilon" not in node.attributes else {"eps": node.attributes["epsilon"]}
    match node.kind:
        case "BatchNormalization":
            return _batch_norm(node, inputs, options)
        case "LayerNormalization" | "RMSNormalization":
            return _layer_norm(node, x, parameters, options)
        case "GroupNormalization":
            name = "onnx.GroupNormalization" + ("-18" if opset < 21 else "")
            spec = preset(name, num_groups=node.attributes["num_groups"], **options)
        case "InstanceNormalization":
            spec = preset("onnx.InstanceNormalization", **options)
        case "LpNormalization":
            spec = preset("onnx.LpNormalization", **node.attributes)
        case "MeanVarianceNormalization":
            axes = tuple(node.attributes.get("axes", (0, 2, 3)))
            spec = preset("onnx.MeanVarianceNormalization", axes=axes)
        case _:
            names = {"size": "size", "alpha": "alpha", "beta": "beta", "bias": "k"}
            chosen = {names[key]: value for key, value in node.attributes.items()}
            spec = preset("onnx.LRN", **chosen)
    return [forward(spec, x, *parameters)]


def _batch_norm(node: Node, inputs: list[Any], options: dict[str, Any]) -> list[Any]:
    x, weight, bias, mean, var = inputs
    new = 1 - node.attributes.get("momentum", 0.9)
    spec, running = (
        preset("onnx.BatchNormalization", momentum=new, **options),
        RunningStats(mean, var),
    )
    if not node.attributes.get("training_mode", 0):
        return [evaluate(spec, running, x, weight, bias)]
    after = updated(spec, running, x)
    return [forward(spec, x, weight, bias), after.mean, after.var]


def _layer_norm(node: Node, x: Any, parameters: list[Any], options: dict[str, Any]) -> list[Any]:
    axis = node.attributes.get("axis", -1) % x.ndim
    spec = preset(f"onnx.{node.kind}", normalized_ndim=x.ndim - axis, **options)
    y = forward(spec, x, *parameters)
    if node.kind == "RMSNormalization":
        return [y]
    batch = statistics(spec, x)
    return [y, batch.mean, 1 / np.sqrt(batch.variance(spec.variance) + (spec.eps or 0))]
