"""Answers to torch's own samples, and the reader of ONNX's: `make oracles` asks those."""

import struct

import numpy as np
import pytest

from tests.norm.oracles.answers import Answer, compared, table
from tests.norm.oracles.protobuf import model, tensor


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(value: int) -> bytes:
    value %= 1 << 64
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


@pytest.mark.slow
def test_every_normalization_sample_of_torch_is_answered_as_torch_does() -> None:
    from tests.norm.oracles import torch_samples

    found = list(torch_samples.answers())
    assert [answer for answer in found if not answer.excess <= 1] == []
    counted = {line.partition(" vectors")[0] for line in table(found)}
    assert "torch ModuleInfo, forward: 132" in counted
    assert "torch OpInfo nn.functional.group_norm, forward: 21" in counted
    assert "torch OpInfo, NumPy references: 74" in counted


def test_a_tensor_is_read_from_packed_and_single_fields() -> None:
    numbers = np.array([[1.5, -2.0, 0.0]], np.float32)
    packed = field(1, varint(1) + varint(3)) + field(2, 1) + field(8, b"x")
    name, read = tensor(packed + field(9, numbers.tobytes()))
    assert (name, read.tolist()) == ("x", numbers.tolist())
    single = field(1, 1) + field(1, 3) + field(2, 1)
    assert tensor(single + field(4, numbers.tobytes()))[1].tolist() == numbers.tolist()
    integers = field(1, 2) + field(2, 7) + field(7, varint(-1) + varint(300))
    assert tensor(integers)[1].tolist() == [-1, 300]


def test_a_model_is_read_with_its_attributes() -> None:
    eps = field(1, b"epsilon") + bytes([2 << 3 | 5]) + struct.pack("<f", 0.5)
    axes = field(1, b"axes") + field(8, -1) + field(8, 300)
    node = field(1, b"x") + field(2, b"y") + field(4, b"LRN") + field(5, eps) + field(5, axes)
    graph = field(1, node) + field(11, field(1, b"x")) + field(12, field(1, b"y"))
    read = model(field(7, graph) + field(8, field(2, 17)))
    assert (read.opset, read.inputs, read.outputs) == (17, ("x",), ("y",))
    assert read.nodes[0].attributes == {"epsilon": 0.5, "axes": [-1, 300]}


def test_a_wrong_shape_or_a_missing_nan_fails_a_vector() -> None:
    nan = float("nan")
    for ours, theirs in ([[1.0]], [1.0]), ([1.0], [nan]), ([nan], [1.0]):
        assert compared("s", "n", [(ours, theirs)], rtol=1, atol=1).excess == np.inf
    assert compared("s", "n", [([nan, 1], [nan, 1])], rtol=0, atol=1) == Answer("s", "n", 0, 0)
    assert table([Answer("s", "n", 0.5, 2)]) == ["s: 1 vectors, 1 failed, worst error 0.5 (n)"]
