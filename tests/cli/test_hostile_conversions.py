"""Files that want to harm `norm convert`: one message, exit code 2, no code run, bounded work."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from tests.cli.twins import Command
from tests.norm.convert.layers import every, written

MARK = "harmed.txt"


class Bomb:
    """Makes a file where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {MARK}",)


def refused(traindx: Command, file: Path, *words: str) -> str:
    """The one message; nothing was run, and it did not take long."""
    start = time.process_time()
    code, out, err = traindx("norm", "convert", file, "--to", "torch", "--no-frameworks", *words)
    assert time.process_time() - start < 20
    assert (code, out) == (2, ""), (out, err)
    assert err.count("\n") == 1
    assert all(character.isprintable() or character == "\n" for character in err)
    assert not Path(MARK).exists()
    return err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- every format, cut off and flipped ------------------------------------------------------------

READ = [("onnx", ".onnx"), ("linen", ".msgpack"), ("linen", ".npz"), ("nnx", ".safetensors")]
READ += [("torch", ".pt"), ("keras", ".keras"), ("keras", ".weights.h5")]


@pytest.mark.parametrize(("framework", "suffix"), READ)
def test_what_is_cut_off_is_refused(
    traindx: Command, folder: Path, framework: str, suffix: str
) -> None:
    path = written(framework, suffix, folder, every(framework))
    whole = path.read_bytes()
    for kept in (0, 1, 7, len(whole) // 2, len(whole) - 20):
        path.write_bytes(whole[:kept])
        refused(traindx, path)


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "suffix"), READ)
def test_flipped_bytes_are_refused_or_converted(
    traindx: Command, folder: Path, framework: str, suffix: str
) -> None:
    path = written(framework, suffix, folder, every(framework)[:1])
    whole = path.read_bytes()
    for place in range(0, len(whole), max(len(whole) // 50, 1)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        words = ("--to", "torch", "--no-frameworks")
        assert traindx("norm", "convert", path, *words)[0] in (0, 1, 2)
        assert not Path(MARK).exists()


@pytest.mark.parametrize("suffix", [".pt", ".npz", ".onnx", ".msgpack", ".safetensors", ".keras"])
def test_folders_and_noise_are_refused(traindx: Command, folder: Path, suffix: str) -> None:
    (folder / f"d{suffix}").mkdir()
    refused(traindx, folder / f"d{suffix}")
    noise = folder / f"n{suffix}"
    noise.write_bytes(np.random.default_rng(0).bytes(5000))
    refused(traindx, noise)
    noise.write_bytes(b"PK\x03\x04" + b"\0" * 100)
    refused(traindx, noise)


# -- pickles --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".pt", ".bin", ".ckpt", ".pth"])
def test_pickles_are_never_run(traindx: Command, folder: Path, suffix: str) -> None:
    file = folder / f"w{suffix}"
    torch.save({"bn.weight": torch.ones(3), "more": Bomb()}, file)
    assert "nothing of it was run" in refused(traindx, file)
    file.write_bytes(pickle.dumps({"bn.weight": Bomb()}))
    refused(traindx, file)


def test_objects_in_an_npz_are_never_unpickled(traindx: Command, folder: Path) -> None:
    objects: dict[str, Any] = {"bn.mean": np.array([Bomb(), 1], dtype=object)}
    np.savez(folder / "w.npz", **objects)
    assert "damaged" in refused(traindx, folder / "w.npz")


# -- bombs ----------------------------------------------------------------------------------------


def repacked(file: Path) -> None:
    """The same zip, deflated."""
    with zipfile.ZipFile(file) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_a_packed_checkpoint_is_refused(traindx: Command, folder: Path) -> None:
    file = folder / "w.pt"
    torch.save({"a.weight": torch.zeros(10_000_000)}, file)
    repacked(file)
    assert file.stat().st_size < 100_000
    assert "compressed, which torch never does" in refused(traindx, file)


def npy(shape: tuple[int, ...], data: bytes) -> bytes:
    """An array of NumPy's that claims a shape."""
    buffer = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + data


def test_an_npz_that_claims_more_than_it_has_is_refused(traindx: Command, folder: Path) -> None:
    file = folder / "w.npz"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("bn.mean.npy", npy((10**12,), b"\0" * 8))
    refused(traindx, file)


def test_an_array_beyond_all_measure_is_refused_unread(traindx: Command, folder: Path) -> None:
    file = folder / "w.npz"
    size = 2**24 + 1
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for leaf in ("mean", "var"):
            archive.writestr(f"bn.{leaf}.npy", npy((size,), b"\0" * 4 * size))
    assert "16,777,217 numbers" in refused(traindx, file)


def test_lengths_that_lie_are_refused(traindx: Command, folder: Path) -> None:
    huge = (b"\xdf\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff\x00")
    deep = b"\x81\xa1a" * 100_000 + b"\x01"
    for content in (*huge, deep):
        file = folder / "w.msgpack"
        file.write_bytes(b"\x81\xa1a" + content)
        refused(traindx, file)
    file = folder / "w.safetensors"
    for header in (
        {"a.weight": {"dtype": "F32", "shape": [10**15], "data_offsets": [0, 4 * 10**15]}},
        {"a.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}},
        {"a.weight": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}},
        {"a.weight": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}},
        ["a"],
    ):
        text = json.dumps(header).encode()
        file.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 4)
        refused(traindx, file)
    file.write_bytes(struct.pack("<Q", 2**63) + b"{}")
    refused(traindx, file)


# -- ONNX -----------------------------------------------------------------------------------------


def model(location: str, length: str = "12") -> bytes:
    """A BatchNormalization whose numbers lie in another file."""
    names = [f"bn.{leaf}" for leaf in ("weight", "bias", "mean", "var")]
    tensors: list[TensorProto] = []
    for name in names:
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[3])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        tensor.external_data.add(key="length", value=length)
        tensors.append(tensor)
    node = helper.make_node("BatchNormalization", ["x", *names], ["y"])
    return helper.make_model(helper.make_graph([node], "g", [], [], tensors)).SerializeToString()


def test_numbers_outside_the_folder_of_a_model_are_not_read(traindx: Command, folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    secret = folder / "secret.bin"
    secret.write_bytes(struct.pack("<3f", 1, 2, 3))
    (inner / "link.bin").symlink_to(secret)
    file = inner / "m.onnx"
    for location in ("../secret.bin", str(secret), "link.bin", "", ".", "m.onnx", "a\0b", "no.bin"):
        file.write_bytes(model(location))
        assert "no file in the model's folder" in refused(traindx, file)
    (inner / "own.bin").write_bytes(secret.read_bytes())
    file.write_bytes(model("own.bin"))
    words = ("--to", "torch", "--no-frameworks")
    assert traindx("norm", "convert", file, *words)[0] == 0
    for length in ("8", "16", "-12", "many", "9" * 5000):
        file.write_bytes(model("own.bin", length))
        assert "are not what it says" in refused(traindx, file)


# -- Keras ----------------------------------------------------------------------------------------


def keras(folder: Path, config: object, weights: bytes = b"", method: int = 0) -> Path:
    file = folder / "m.keras"
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", weights)
    return file


def test_a_lambda_layer_is_refused_as_safe_mode_does(traindx: Command, folder: Path) -> None:
    code = {"class_name": "__lambda__", "config": {"code": "4wEAAAA=", "defaults": None}}
    layer = {"class_name": "Lambda", "config": {"name": "x", "function": code}}
    for config in (
        {"class_name": "Sequential", "config": {"layers": [layer]}},
        {"class_name": "Mine", "config": {"deep": [{"activation": code}]}},
    ):
        assert "only without safe_mode" in refused(traindx, keras(folder, config))


def test_a_model_of_keras_that_unpacks_to_much_is_refused(traindx: Command, folder: Path) -> None:
    file = keras(folder, {}, b"\0" * 50_000_000, zipfile.ZIP_DEFLATED)
    assert file.stat().st_size < 200_000
    assert "damaged" in refused(traindx, file)


def test_a_configuration_without_end_is_refused(traindx: Command, folder: Path) -> None:
    deep: Any = {}
    for _ in range(500):
        deep = {"config": deep}
    refused(traindx, keras(folder, deep))


def hdf5(folder: Path, fill: Callable[[Any], None]) -> Path:
    path = folder / "w.weights.h5"
    with h5py.File(path, "w") as file:
        group = file.create_group("layers/batch_normalization/vars")
        group.attrs["name"] = "bn"
        for key in ("1", "2", "3"):
            group.create_dataset(key, data=np.ones(3, np.float32))
        fill(group)
    return path


def test_weights_that_reach_outside_their_file_are_refused(traindx: Command, folder: Path) -> None:
    (folder / "secret.bin").write_bytes(b"\0" * 12)

    def external(group: Any) -> None:
        group["0"] = h5py.ExternalLink("other.h5", "/data")

    def soft(group: Any) -> None:
        group["0"] = h5py.SoftLink("/layers/batch_normalization/vars/1")

    def storage(group: Any) -> None:
        place = [("secret.bin", 0, 12)]
        group.create_dataset("0", (3,), "f4", external=place)

    def virtual(group: Any) -> None:
        layout = h5py.VirtualLayout((3,), "f4")
        layout[:] = h5py.VirtualSource("other.h5", "data", (3,))
        group.create_virtual_dataset("0", layout)

    for fill in (external, soft, storage, virtual):
        file = hdf5(folder, fill)
        assert "is a link to another place" in refused(traindx, file)


def test_weights_that_claim_more_than_they_hold_are_refused(traindx: Command, folder: Path) -> None:
    def huge(group: Any) -> None:
        group.create_dataset("0", (2**40,), "f4", chunks=(1024,))

    def text(group: Any) -> None:
        group.create_dataset("0", data=["a", "b", "c"])

    assert "numbers" in refused(traindx, hdf5(folder, huge))
    refused(traindx, hdf5(folder, text))


# -- layers that are no layers --------------------------------------------------------------------


def test_numbers_without_an_answer_are_refused(traindx: Command, folder: Path) -> None:
    for role, values in (
        ("running_var", torch.tensor([1.0, float("nan"), 1.0])),
        ("running_var", torch.tensor([1.0, -1.0, 1.0])),
        ("running_mean", torch.full((3,), float("inf"))),
        ("running_var", torch.ones(3, 3)),
        ("weight", torch.ones(3, dtype=torch.int64)),
        ("bias", torch.ones(3, dtype=torch.complex64)),
        ("bias", torch.zeros(1).expand(10**12)),
    ):
        file = folder / "w.pt"
        torch.save({**nn.BatchNorm1d(3).state_dict(prefix="bn."), f"bn.{role}": values}, file)
        assert "bn" in refused(traindx, file)


def test_names_with_control_characters_are_shown_plainly(traindx: Command, folder: Path) -> None:
    file = folder / "w.pt"
    name = "[bold red]a\x1b[2J\x07\r\n\u202e"
    torch.save(nn.BatchNorm1d(3).state_dict(prefix=f"{name}."), file)
    words = ("--to", "linen", "--no-frameworks")
    code, out, _ = traindx("norm", "convert", file, *words)
    assert code == 0
    assert all(character.isprintable() or character == "\n" for character in out)


@pytest.mark.slow
def test_thousands_of_layers_take_seconds(traindx: Command, folder: Path) -> None:
    state = {}
    for i in range(1500):
        state |= {f"l{i}.{k}": v for k, v in nn.BatchNorm1d(2).state_dict().items()}
    torch.save(state, folder / "w.pt")
    start = time.process_time()
    code, out, _ = traindx("norm", "convert", "w.pt", "--to", "nnx", "--no-frameworks")
    assert time.process_time() - start < 30
    assert code == 0
    assert "and 1440 more" in out
    assert len(out) < 6000
