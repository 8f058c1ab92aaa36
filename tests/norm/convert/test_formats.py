"""Files of every format: what is written is read again, and what others write is read rightly."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import onnx
import pytest
import safetensors.torch
import torch
from onnx import TensorProto, helper, numpy_helper

from tests.norm.convert.layers import FILES, every, hints, same, state, written
from traindx.norm.convert.content import Content, parted
from traindx.norm.convert.formats import msgpack as flax_files
from traindx.norm.convert.formats import npz, onnx_graph
from traindx.norm.convert.formats import onnx as onnx_files
from traindx.norm.convert.formats import safetensors as safetensors_files
from traindx.norm.convert.formats import torch as torch_files
from traindx.norm.convert.frameworks import catalog
from traindx.norm.convert.frameworks.catalog import FRAMEWORKS

FLAX = b"\x82\xa2bn\x82\xa5scale\xc7\x19\x01\x93\x91\x03\xa7float32\xc4\x0c" + struct.pack(
    "<3f", 1, 2, 3
)
FLAX += b"\xa4mean\xc7\x19\x01\x93\x91\x03\xa7float32\xc4\x0c" + struct.pack("<3f", 4, 5, 6)
STEPS = b"\xa5steps\xcd\x01\x00"
FLAX += STEPS
"""The bytes that Flax 0.12.8 writes for a tree of two arrays and the number 256."""


@pytest.mark.parametrize(("framework", "suffix"), FILES)
def test_what_is_written_is_read_again_to_the_bit(
    tmp_path: Path, framework: str, suffix: str
) -> None:
    states = every(framework)
    for number, one in enumerate(states):
        object.__setattr__(one, "name", FRAMEWORKS[framework].names(f"block.{number}"))
    path = written(framework, suffix, tmp_path, states)
    own, found = catalog.read(path, framework, hints(states))
    assert own.name == framework
    assert not found.refused
    read = {one.name: one for one in found.states}
    assert set(read) == {one.name for one in states}
    for one in states:
        assert same(one.arrays, read[one.name].arrays)
        assert read[one.name].spec.eps == one.spec.eps
        assert read[one.name].batches == one.batches


@pytest.mark.parametrize(("framework", "suffix"), FILES)
def test_the_framework_of_a_file_is_known_by_its_names(
    tmp_path: Path, framework: str, suffix: str
) -> None:
    states = [state(framework, "BatchNorm")]
    path = written(framework, suffix, tmp_path, states)
    assert catalog.read(path, None, hints(states))[0].name == framework


def test_the_bytes_of_flax_are_a_tree(tmp_path: Path) -> None:
    path = tmp_path / "w.msgpack"
    path.write_bytes(FLAX)
    content = flax_files.read(path)
    assert set(content.arrays) == {("bn", "scale"), ("bn", "mean")}
    assert content.read(("bn", "mean")).tolist() == [4, 5, 6]


def test_a_tree_is_written_as_the_bytes_of_flax(tmp_path: Path) -> None:
    path = tmp_path / "w.msgpack"
    scale, mean = (np.array(values, np.float32) for values in ([1, 2, 3], [4, 5, 6]))
    flax_files.write(path, {("bn", "scale"): scale, ("bn", "mean"): mean}, note="flax")
    assert path.read_bytes() == FLAX.replace(b"\x82\xa2bn", b"\x81\xa2bn")[: -len(STEPS)]


BFLOAT16 = torch.tensor([1.0, -2.5, 3e38, 1e-38], dtype=torch.bfloat16)


def bfloat16_in(folder: Path) -> dict[str, Content]:
    """The same numbers in every format, as others write them."""
    raw = BFLOAT16.view(torch.int16).numpy().tobytes()
    torch.save({"a.weight": BFLOAT16}, folder / "w.pt")
    safetensors.torch.save_file({"a.weight": BFLOAT16}, folder / "w.safetensors")
    pack = msgpack.Packer().pack
    packed = msgpack.ExtType(1, pack(((4,), "bfloat16", raw)))
    (folder / "w.msgpack").write_bytes(pack({"a": {"weight": packed}}))
    return {
        "torch": torch_files.read(folder / "w.pt"),
        "safetensors": safetensors_files.read(folder / "w.safetensors"),
        "msgpack": flax_files.read(folder / "w.msgpack"),
    }


@pytest.mark.parametrize("format", ["torch", "safetensors", "msgpack"])
def test_bfloat16_is_widened_exactly(tmp_path: Path, format: str) -> None:
    found = bfloat16_in(tmp_path)[format].read(("a", "weight"))
    assert found.dtype == np.float32
    assert found.tolist() == BFLOAT16.float().tolist()


def test_an_npz_of_numpy_is_read(tmp_path: Path) -> None:
    path = tmp_path / "w.npz"
    np.savez_compressed(path, **{"a/scale": np.arange(3.0), "a/mean": np.ones(3)})
    content = npz.read(path)
    assert content.read(("a", "scale")).tolist() == [0, 1, 2]


def test_names_are_parted_by_what_parts_them() -> None:
    assert parted(["a/b", "c"]) == {"a/b": ("a", "b"), "c": ("c",)}
    slash = "params.wn.d/kernel/scale"
    assert parted([slash])[slash] == ("params", "wn", "d/kernel/scale")


def test_a_model_of_onnx_is_valid_and_has_every_node(tmp_path: Path) -> None:
    path = written("onnx", ".onnx", tmp_path, every("onnx"))
    onnx.checker.check_model(str(path), full_check=True)
    read = onnx.load(str(path))
    assert [one.version for one in read.opset_import] == [onnx_files.OPSET_WITH_RMS]
    kinds = {node.op_type: node for node in read.graph.node}
    assert set(kinds) == {
        *("BatchNormalization", "LayerNormalization", "GroupNormalization"),
        *("InstanceNormalization", "RMSNormalization"),
    }
    node = kinds["BatchNormalization"]
    assert {one.name: helper.get_attribute_value(one) for one in node.attribute} == {
        "epsilon": pytest.approx(3e-4),
        "momentum": pytest.approx(0.9),
    }
    constants = {one.name for one in read.graph.initializer}
    assert [name in constants for name in node.input] == [False, True, True, True, True]


def graph_of(tensor: TensorProto, folder: Path) -> Any:
    """A model with one constant."""
    path = folder / "m.onnx"
    graph = helper.make_graph([], "g", [], [], [tensor])
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return onnx_graph.read_graph(path, ())


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize(
    "kind", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE]
)
def test_numbers_of_onnx_are_read_in_each_of_their_types(
    tmp_path: Path, kind: int, raw: bool
) -> None:
    values = np.array([1.5, -2.0])
    if raw:
        tensor = numpy_helper.from_array(values.astype(helper.tensor_dtype_to_np_dtype(kind)), "x")
    else:
        tensor = helper.make_tensor("x", kind, [2], values)
    found = graph_of(tensor, tmp_path).constants["x"].load()
    assert found.dtype.kind == "f"
    assert found.tolist() == [1.5, -2.0]


def test_numbers_beside_the_model_are_read_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"\0" * 4 + struct.pack("<2f", 1.5, -2.0))
    tensor = TensorProto(name="x", data_type=TensorProto.FLOAT, dims=[2])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", "offset": "4", "length": "8"}.items():
        tensor.external_data.add(key=key, value=value)
    assert graph_of(tensor, tmp_path).constants["x"].load().tolist() == [1.5, -2.0]
