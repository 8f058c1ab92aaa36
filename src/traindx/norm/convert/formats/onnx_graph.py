"""What an ONNX model tells of its normalizations: nodes and constants, by the package onnx.

What a model keeps in other files is read only out of its own folder.
"""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from traindx.errors import UsageError
from traindx.messages import say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import LARGEST, Stored, unreadable, whole, widened
from traindx.norm.convert.formats.libraries import library

_LARGEST_MODEL = 2**31 - 1
"""Bytes of a model at most, as protocol buffers have it."""
_MOST_NODES = 1_000_000
_DOMAINS = {"", "ai.onnx"}


@dataclass(frozen=True, slots=True)
class Node:
    """One operation."""

    kind: str
    name: str
    place: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


@dataclass(slots=True)
class Graph:
    """Operations of a model in order, its constants, and the version of its operations."""

    opset: int = 1
    nodes: list[Node] = field(default_factory=list[Node])
    constants: dict[str, Stored] = field(default_factory=dict[str, Stored])


def read_graph(path: Path, kinds: Container[str]) -> Graph:
    """The nodes of these kinds and the constants of a model; no number is read yet.

    Raises:
        UsageError: It is no model.
    """
    onnx = library("onnx")
    data = whole(path, _LARGEST_MODEL)
    try:
        model = onnx.ModelProto.FromString(data)
        if not model.HasField("graph"):
            raise ValueError("no graph")
        return _graph(path, model, kinds)
    except UsageError:
        raise
    except Exception as error:  # protobuf's own error is no class of Python's
        raise unreadable(path, say("it is damaged, or no model of ONNX")) from error


def _graph(path: Path, model: Any, kinds: Container[str]) -> Graph:
    found = Graph()
    for one in model.opset_import:
        if one.domain in _DOMAINS:
            found.opset = one.version
    if len(model.graph.node) > _MOST_NODES:
        raise ValueError("too many nodes")
    for tensor in model.graph.initializer:
        found.constants[tensor.name] = _stored(path, tensor)
    for place, one in enumerate(model.graph.node):
        kind = one.op_type if one.domain in _DOMAINS else ""
        if kind in kinds:
            found.nodes.append(_node(path, one, place))
        elif kind in {"Constant", "Identity"} and one.output:
            _constant(_node(path, one, place), found.constants)
    return found


def _constant(node: Node, constants: dict[str, Stored]) -> None:
    """What a node of constants, or a copy of one, adds to them."""
    if node.kind == "Constant" and isinstance(node.attributes.get("value"), Stored):
        constants[node.outputs[0]] = node.attributes["value"]
    elif node.kind == "Identity" and node.inputs and node.inputs[0] in constants:
        constants[node.outputs[0]] = constants[node.inputs[0]]


def _node(path: Path, node: Any, place: int) -> Node:
    settings = {one.name: _setting(path, one) for one in node.attribute}
    return Node(node.op_type, node.name, place, tuple(node.input), tuple(node.output), settings)


def _setting(path: Path, attribute: Any) -> Any:
    """The value of an attribute; of graphs and other types, which no normalization has, None."""
    match attribute.type:
        case attribute.FLOAT:
            return attribute.f
        case attribute.INT:
            return attribute.i
        case attribute.INTS:
            return list(attribute.ints)
        case attribute.TENSOR:
            return _stored(path, attribute.t)
        case _:
            return None


def _stored(path: Path, tensor: Any) -> Stored:
    def load() -> Array:
        external = tensor.data_location == tensor.EXTERNAL
        held = _with_bytes(path, tensor) if external else tensor
        return widened(library("onnx", "onnx.numpy_helper").to_array(held))

    if any(extent < 0 for extent in tensor.dims):
        raise ValueError("no shape")
    return Stored(tuple(tensor.dims), load)


def _with_bytes(path: Path, tensor: Any) -> Any:
    """A tensor with its bytes from the file beside the model.

    Read here and not by the package, whose older releases leave the model's folder.

    Raises:
        UsageError: The place is outside the model's folder, or not there.
        ValueError: It holds other bytes than those.
    """
    onnx = library("onnx")
    place = {entry.key: entry.value for entry in tensor.external_data}
    kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    size = int(np.prod(tensor.dims, dtype=object)) * kind.itemsize
    file = _beside(path, tensor.name, place.get("location", ""))
    offset, length = int(place.get("offset", "0")), int(place.get("length", str(size)))
    end = file.stat().st_size
    if length != size or size > LARGEST * 8 or not 0 <= offset <= end - length:
        raise ValueError("the bytes are not there")
    with file.open("rb") as opened:
        opened.seek(offset)
        raw = opened.read(length)
    return onnx.TensorProto(
        name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=raw
    )


def _beside(path: Path, name: str, location: str) -> Path:
    folder = path.parent.resolve()
    try:
        file = (folder / location).resolve()
        inside = file.is_relative_to(folder) and file.is_file() and file != path.resolve()
    except (OSError, ValueError):
        inside, file = False, folder
    if inside and location and not os.path.isabs(location):
        return file
    raise unreadable(
        path,
        say(
            "the numbers of `{name}` are said to be in `{location}`, which is no file in the "
            "model's folder",
            name=name,
            location=location[:80],
        ),
    )
