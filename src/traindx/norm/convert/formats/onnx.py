"""`.onnx`: normalization nodes of a graph with the constants they take.

Written, it is a model with a node a layer, each with an input and an output of its own: numbers
together with eps, momentum, groups and axes, for any program that reads ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traindx.errors import TraindxError
from traindx.messages import Message, say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import Content, Name, Stored, Told
from traindx.norm.convert.formats.libraries import library
from traindx.norm.convert.formats.onnx_graph import Graph, Node, read_graph
from traindx.norm.convert.state import BIAS, MEAN, VAR, WEIGHT
from traindx.norm.presets import preset
from traindx.norm.spec import NormSpec

SUFFIXES = (".onnx",)
OPSET, OPSET_WITH_RMS = 21, 23
_IR = 10
_MOST_AXES = 64  # of an array of NumPy
_WIDEST = 2**12 - 1  # more than channels that anybody normalizes so, and soon computed
_LEAVES = ("weight", "scale", "gamma", "w")
_PARAMETERS = {
    "BatchNormalization": (WEIGHT, BIAS, MEAN, VAR),
    "GroupNormalization": (WEIGHT, BIAS),
    "InstanceNormalization": (WEIGHT, BIAS),
    "LayerNormalization": (WEIGHT, BIAS),
    "RMSNormalization": (WEIGHT,),
    "LRN": (),
}


def read(path: Path) -> Content:
    """The normalizations of a model.

    Raises:
        UsageError: It is no model.
    """
    graph = read_graph(path, _PARAMETERS)
    arrays: dict[Name, Stored] = {}
    told: dict[str, Told] = {}
    refused: dict[str, Message] = {}
    for node in graph.nodes:
        name = _name(graph, node, {*told, *refused})
        roles = _PARAMETERS[node.kind][: max(len([i for i in node.inputs[1:] if i]), 0)]
        given = [graph.constants.get(key) for key in node.inputs[1 : 1 + len(roles)]]
        found = [one for one in given if one is not None]
        if len(found) < len(given):
            refused[name] = say(
                "its numbers are computed within the graph; export the model with constants"
            )
            continue
        try:
            spec = _spec(node, graph.opset, [one.shape for one in found])
        except (TraindxError, TypeError, ValueError, KeyError, IndexError) as error:
            refused[name] = say("its attributes make no layer ({why})", why=str(error)[:200])
            continue
        told[name] = Told(spec, roles)
        arrays |= {(name, role): one for role, one in zip(roles, found, strict=True)}
    return Content(path, arrays, told, refused)


def _name(graph: Graph, node: Node, taken: set[str]) -> str:
    """What its scale is called without `weight`; else the node's own name, or its place."""
    scale = node.inputs[1] if len(node.inputs) > 1 else ""
    stem, dot, leaf = scale.replace("/", ".").rpartition(".")
    known = dot and leaf.lower() in _LEAVES and scale in graph.constants
    name = stem if known else node.name.strip("/").replace("/", ".") or f"{node.kind}_{node.place}"
    return name if name not in taken else f"{name}_{node.place}"


def _spec(node: Node, opset: int, shapes: Sequence[tuple[int, ...]]) -> NormSpec:
    given = dict(node.attributes)
    eps = {"eps": _decimal(given["epsilon"])} if "epsilon" in given else {}
    match node.kind:
        case "BatchNormalization":
            momentum = 1 - _decimal(given.get("momentum", 0.9))
            return preset("onnx.BatchNormalization", momentum=round(momentum, 9), **eps)
        case "GroupNormalization":
            name = "onnx.GroupNormalization" + ("-18" if opset < 21 else "")
            return preset(name, num_groups=given["num_groups"], **eps)
        case "InstanceNormalization":
            return preset("onnx.InstanceNormalization", **eps)
        case "LRN":
            keys = {"size": "size", "alpha": "alpha", "beta": "beta", "bias": "k"}
            reals = {keys[k]: _decimal(v) for k, v in given.items() if k in keys and k != "size"}
            if given["size"] > _WIDEST:
                raise ValueError(f"size {given['size']}")
            return preset("onnx.LRN", size=given["size"], **reals)
        case _:
            axis = given.get("axis", -1)
            axes = -axis if axis < 0 else len(shapes[0])
            if axes > _MOST_AXES:
                raise ValueError(f"{axes} axes")
            return preset(f"onnx.{node.kind}", normalized_ndim=axes, **eps)


def _decimal(value: Any) -> float:
    """A float of 32 bits as the decimal number that was meant: 1e-05, not 9.99999975e-06."""
    return float(str(np.float32(value)))


# -- written --------------------------------------------------------------------------------------


def write(path: Path, layers: Sequence[tuple[str, NormSpec, dict[str, Array]]]) -> None:
    """A model with a node for each layer: its name, what it computes, and its arrays."""
    onnx = library("onnx")
    opset = OPSET_WITH_RMS if any(s.kind == "RMSNorm" for _, s, _ in layers) else OPSET
    graph = onnx.GraphProto(name="normalization")
    for layer in layers:
        _add(graph, *layer)
    model = onnx.helper.make_model(
        graph,
        producer_name="traindx",
        ir_version=_IR,
        opset_imports=[onnx.helper.make_opsetid("", opset)],
    )
    path.write_bytes(model.SerializeToString())


def _add(graph: Any, name: str, spec: NormSpec, arrays: dict[str, Array]) -> None:
    onnx = library("onnx")
    kind = kind_of(spec)
    roles = [role for role in _PARAMETERS[kind] if role in arrays]
    names = [f"{name}.{role}" for role in roles]
    ends = f"{name}.input", f"{name}.output"
    node = onnx.helper.make_node(
        kind, [ends[0], *names], ends[1:], name=name, **_attributes(kind, spec)
    )
    dtype = arrays[roles[0]].dtype if roles else np.dtype(np.float32)
    code = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    shape = _shape(name, spec, arrays)
    graph.node.append(node)
    graph.initializer.extend(
        onnx.numpy_helper.from_array(arrays[role], key)
        for role, key in zip(roles, names, strict=True)
    )
    graph.input.append(onnx.helper.make_tensor_value_info(ends[0], code, shape))
    graph.output.append(onnx.helper.make_tensor_value_info(ends[1], code, shape))


def kind_of(spec: NormSpec) -> str:
    """What ONNX calls a layer."""
    names = {"LocalResponseNorm": "LRN"}
    return names.get(spec.kind, spec.kind.replace("Norm", "Normalization"))


def _attributes(kind: str, spec: NormSpec) -> dict[str, float | int]:
    eps = {"epsilon": spec.eps or 0.0}
    match kind:
        case "BatchNormalization":
            assert spec.running is not None
            return {**eps, "momentum": 1 - (spec.running.momentum or 0.0)}
        case "GroupNormalization":
            assert spec.groups is not None
            return {**eps, "num_groups": spec.groups.count or 1}
        case "InstanceNormalization":
            return eps
        case "LRN":
            window = spec.window
            assert window is not None
            size = window.before + 1 + window.after
            alpha = window.alpha * size
            return {
                "size": size,
                "alpha": alpha,
                "beta": float(window.beta),
                "bias": float(window.k),
            }
        case _:
            return {**eps, "axis": -len(spec.reduced.named)}


def _shape(name: str, spec: NormSpec, arrays: dict[str, Array]) -> list[str | int]:
    """Of input and output: a batch, its channels, and one or more further axes."""
    sizes = arrays[WEIGHT].shape if WEIGHT in arrays else ()
    if spec.affine is not None and all(axis < 0 for axis in spec.affine.named):
        return [f"{name}.batch", f"{name}.length", *sizes]
    found = [f"{name}.batch", sizes[0] if sizes else f"{name}.channels", f"{name}.length"]
    return [*found, f"{name}.width"] if kind_of(spec) == "LRN" else found
