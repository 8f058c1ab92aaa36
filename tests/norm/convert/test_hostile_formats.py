"""What the readers of each format refuse before it costs memory, time or an answer."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.norm.convert.layers import NONE, every, written
from traindx.errors import UsageError
from traindx.norm.convert.content import LARGEST
from traindx.norm.convert.frameworks import catalog
from traindx.norm.convert.frameworks.framework import Found

SUFFIXES = [".pt", ".npz", ".onnx", ".msgpack", ".safetensors", ".keras", ".h5"]
pack: Any = msgpack.Packer().pack


def refused(path: Path, why: str, source: str | None = None) -> None:
    start = time.process_time()
    with pytest.raises(UsageError, match=why) as told:
        catalog.read(path, source, NONE)
    assert path.name in str(told.value)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_no_regular_file_is_not_opened(tmp_path: Path, suffix: str) -> None:
    pipe, device, gone = (tmp_path / f"{name}{suffix}" for name in ("pipe", "device", "gone"))
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    gone.symlink_to(tmp_path / "nothing")
    refused(pipe, "it is no regular file")
    refused(device, "it is no regular file")
    refused(gone, "No such file")


@pytest.mark.parametrize(
    ("framework", "suffix", "package"),
    [
        ("torch", ".safetensors", "safetensors"),
        ("linen", ".msgpack", "msgpack"),
        ("keras", ".keras", "h5py"),
        ("keras", ".weights.h5", "h5py"),
        ("onnx", ".onnx", "onnx"),
    ],
)
def test_a_missing_package_is_named_for_reading_and_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, framework: str, suffix: str, package: str
) -> None:
    path = written(framework, suffix, tmp_path, every(framework))
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=f"not installed: `pip install {package}`"):
        catalog.read(path, framework, NONE)
    path.unlink()
    with pytest.raises(UsageError, match=f"not installed: `pip install {package}`"):
        written(framework, suffix, tmp_path, every(framework))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("suffix", "size"), [(".msgpack", 2**32 + 1), (".onnx", 2**31)])
def test_a_file_too_large_to_be_taken_at_once_is_not_read(
    tmp_path: Path, suffix: str, size: int
) -> None:
    path = tmp_path / f"w{suffix}"
    with path.open("wb") as file:
        file.truncate(size)
    refused(path, f"it has {size:,} bytes")


# -- MessagePack ----------------------------------------------------------------------------------


def array(*packed: object) -> bytes:
    return pack({"a": {"scale": msgpack.ExtType(1, pack(packed))}})


@pytest.mark.parametrize(
    "content",
    [
        b"\x82\xa1a\x01\xa1a\x02",  # a name twice
        b"\x82\xa11\x01\x01\x02",  # twice once it is a name
        pack({b"a": 1}),
        pack([1]),
        b"\x81\xa1a\xd4\xff\x00",  # a time of one byte
        b"\x81\xa1a" + b"\xdd\x00\x98\x96\x80" * 500 + b"\0" * 1000,  # lists of millions, nested
        b"\x81\xa1a" + b"\xdf\x00\x98\x96\x80\x01" * 500 + b"\0" * 1000,
        array([-3], "float32", b"\0" * 12),
        array([-3, -1], "float32", b"\0" * 12),
        array(None, "float32", b"\0" * 12),
        array([3], ["float32"], b"\0" * 12),
        array([3], "float32", "text of 12 b"),
        array([3], "float32", b"\0" * 12, 1),
        array([3], "float32"),
    ],
)
def test_what_is_no_tree_of_arrays_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.msgpack"
    path.write_bytes(content)
    refused(path, "damaged, or no tree of Flax")


def test_types_that_run_code_or_have_too_many_axes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.msgpack"
    path.write_bytes(array([1], "O", b"\0" * 8))
    refused(path, "numbers of type O are not read")
    leaves = {leaf: msgpack.ExtType(1, pack(((1,) * 100, "float32", b"\0" * 4))) for leaf in LEAVES}
    path.write_bytes(pack({"a": leaves}))
    refused(path, "not what it says", "nnx")


LEAVES = ("scale", "mean", "var")


# -- ONNX -----------------------------------------------------------------------------------------


def tensors() -> list[TensorProto]:
    names = ("weight", "bias", "mean", "var")
    return [numpy_helper.from_array(np.ones(3, np.float32), f"bn.{name}") for name in names]


def node(kind: str, held: Sequence[TensorProto] = (), **settings: Any) -> NodeProto:
    return helper.make_node(kind, ["x", *(one.name for one in held)], ["y"], **settings)


def saved(folder: Path, node: NodeProto, held: Sequence[TensorProto] = ()) -> Path:
    path = folder / "m.onnx"
    model = helper.make_model(helper.make_graph([node], "g", [], [], held))
    path.write_bytes(model.SerializeToString())
    return path


def read(path: Path) -> Found:
    return catalog.read(path, None, NONE)[1]


def test_the_model_that_the_others_spoil_is_read(tmp_path: Path) -> None:
    held = tensors()
    (one,) = read(saved(tmp_path, node("BatchNormalization", held), held)).states
    assert one.name == "bn"


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("dims", [LARGEST + 1], "claims 16,777,217 numbers"),
        ("dims", [2**62, 2**62], "numbers, where a normalization"),
        ("dims", [2], "not what it says"),
        ("dims", [], "not what it says"),
        ("dims", [-3], "damaged"),
        ("data_type", 99, "not what it says"),
        ("data_type", TensorProto.STRING, "not what it says"),
        ("data_type", TensorProto.COMPLEX64, "not what it says"),
        ("data_type", TensorProto.DOUBLE, "not what it says"),
    ],
)
def test_a_constant_that_lies_is_refused(tmp_path: Path, field: str, value: Any, why: str) -> None:
    held = tensors()
    if field == "dims":
        held[0].dims[:] = value
    else:
        setattr(held[0], field, value)
    refused(saved(tmp_path, node("BatchNormalization", held), held), why)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("LayerNormalization", {"axis": -(10**12)}),
        ("LRN", {"size": 10**15 + 1}),
        ("LRN", {}),
        ("GroupNormalization", {"num_groups": 0}),
        ("GroupNormalization", {"num_groups": "six"}),
        ("LayerNormalization", {"epsilon": float("nan")}),
        ("LayerNormalization", {"epsilon": "small"}),
    ],
)
def test_settings_beyond_all_measure_refuse_their_layer(
    tmp_path: Path, kind: str, settings: dict[str, Any]
) -> None:
    held = tensors()[:2] if kind != "LRN" else []
    found = read(saved(tmp_path, node(kind, held, **settings), held))
    assert not found.states
    (why,) = found.refused.values()
    assert "make no layer" in why


def test_millions_of_nodes_cost_no_minutes(tmp_path: Path) -> None:
    model = ModelProto()
    model.graph.node.extend([NodeProto()] * 1_000_001)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    refused(path, "damaged")
