"""As much of the wire format of protocol buffers as ONNX's test vectors need.

A message is a sequence of (field number, value); what a field means is the reader's to know:
https://protobuf.dev/programming-guides/encoding and onnx.proto3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_TYPES = {1: np.float32, 6: np.int32, 7: np.int64, 10: np.float16, 11: np.float64}


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of a graph."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Model:
    """A graph and the version of its operations."""

    opset: int
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[str, Any]


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Every field of a message, in the order it stands there."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            width = {1: 8, 5: 4}[wire]
            value, at = data[at : at + width], at + width
        yield number, value


def tensor(data: bytes) -> tuple[str, Any]:
    """A TensorProto's name and numbers."""
    shape: list[int] = []
    found: dict[int, Any] = {}
    for number, value in fields(data):
        if number == 1:
            shape += _integers(value)
        elif number in {2, 4, 7, 8, 9}:
            found[number] = value
    dtype = _TYPES[found[2]]
    if 9 in found:
        numbers = np.frombuffer(found[9], dtype)
    elif 4 in found:
        numbers = np.frombuffer(found[4], np.float32)
    else:
        numbers = np.array(_integers(found.get(7, b"")), dtype)
    return found.get(8, b"").decode(), numbers.reshape(shape)


def model(data: bytes) -> Model:
    """A ModelProto's graph."""
    graph, opset = b"", 1
    for number, value in fields(data):
        if number == 7:
            graph = value
        elif number == 8:
            domain = dict(fields(value))
            opset = domain.get(2, opset) if not domain.get(1) else opset
    nodes: list[Node] = []
    names: dict[int, list[str]] = {11: [], 12: []}
    constants: dict[str, Any] = {}
    for number, value in fields(graph):
        if number == 1:
            nodes.append(_node(value))
        elif number == 5:
            name, numbers = tensor(value)
            constants[name] = numbers
        elif number in names:
            names[number].append(dict(fields(value))[1].decode())
    return Model(opset, tuple(nodes), tuple(names[11]), tuple(names[12]), constants)


def _node(data: bytes) -> Node:
    inputs: list[str] = []
    outputs: list[str] = []
    kind, attributes = "", {}
    for number, value in fields(data):
        if number == 1:
            inputs.append(value.decode())
        elif number == 2:
            outputs.append(value.decode())
        elif number == 4:
            kind = value.decode()
        elif number == 5:
            name, setting = _attribute(value)
            attributes[name] = setting
    return Node(kind, tuple(inputs), tuple(outputs), attributes)


def _attribute(data: bytes) -> tuple[str, Any]:
    name, setting, several = "", None, []
    for number, value in fields(data):
        if number == 1:
            name = value.decode()
        elif number == 2:
            (setting,) = struct.unpack("<f", value)
        elif number == 3:
            setting = _signed(value)
        elif number == 4:
            setting = value.decode()
        elif number == 8:
            several += _integers(value)
    return name, several or setting


def _integers(value: int | bytes) -> list[int]:
    """Integers one by one or packed."""
    if isinstance(value, int):
        return [_signed(value)]
    found: list[int] = []
    at = 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(_signed(number))
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
