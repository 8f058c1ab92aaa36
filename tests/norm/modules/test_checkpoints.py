"""Checkpoints: what is read, and that nothing in a hostile one is run."""

import os
import pickle
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from traindx.errors import UsageError
from traindx.norm.modules.checkpoints import load_into, read, save


def _state() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).state_dict()


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": state, "optimizer": {"state": {}}},
        lambda state: {"epoch": 1, "loss": torch.tensor(0.3), "net": {"state_dict": state}},
    ],
)
def test_a_state_is_found_where_it_commonly_lies(tmp_path: Path, wrap: Any) -> None:
    file = tmp_path / "w.pt"
    torch.save(wrap(_state()), file)
    found = read(file)
    assert found.keys() == _state().keys()
    assert all(found[name].equal(value) for name, value in _state().items())


def test_a_model_gets_its_weights_back_without_a_prefix(tmp_path: Path) -> None:
    file, state = tmp_path / "w.pt", _state()
    torch.save({f"module._orig_mod.{name}": value for name, value in state.items()}, file)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    load_into(model, file)
    assert cast(Any, model[0]).weight.equal(state["0.weight"])


@pytest.mark.parametrize("name", ["w.pt", "w.safetensors"])
def test_what_is_saved_is_read_again_and_never_written_over(tmp_path: Path, name: str) -> None:
    model, file = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), tmp_path / name
    save(model, file)
    found = read(file)
    assert all(found[key].equal(value) for key, value in model.state_dict().items())
    with pytest.raises(UsageError, match=r"exists\. Name a new file"):
        save(model, file)
    assert os.listdir(tmp_path) == [name]


def test_tied_and_transposed_weights_are_saved_whole(tmp_path: Path) -> None:
    """Safetensors itself refuses tensors that share their memory."""
    model, file = (
        nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)}),
        tmp_path / "w.safetensors",
    )
    cast(Any, model["b"]).weight = cast(Any, model["a"]).weight
    cast(Any, model["a"]).weight.data = torch.randn(3, 3).T
    save(model, file)
    again = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    load_into(again, file)
    assert all(again.state_dict()[key].equal(value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("kept", [0, 7, 40, 0.9])
def test_a_safetensors_file_that_is_cut_off_is_refused(tmp_path: Path, kept: float) -> None:
    file = tmp_path / "w.safetensors"
    save(nn.BatchNorm1d(3), file)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(kept * len(whole)) if kept < 1 else int(kept)])
    with pytest.raises(UsageError, match="Cannot read"):
        read(file)


def test_a_safetensors_header_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    for header in (
        b'{"a":{"dtype":"F32","shape":[1000000000],"data_offsets":[0,4000000000]}}',
        b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}',
        b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}}',
        b"[" * 5000,
    ):
        file.write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4)
        with pytest.raises(UsageError, match="Cannot read"):
            read(file)
    file.write_bytes((1 << 60).to_bytes(8, "little") + b"{}")
    with pytest.raises(UsageError, match="Cannot read"):
        read(file)


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no folder"):
        save(nn.Linear(3, 2), tmp_path / "none" / "w.pt")
    with pytest.raises(UsageError, match="Cannot write"):
        save(nn.Linear(3, 2), tmp_path / ("n" * 300))
    assert os.listdir(tmp_path) == []


class _Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.place),)


def test_a_bomb_is_refused_and_does_not_go_off(tmp_path: Path) -> None:
    mark, file, plain = tmp_path / "gone-off", tmp_path / "bomb.pt", tmp_path / "plain.pt"
    torch.save({"weight": torch.ones(2), "extra": _Bomb(mark)}, file)
    plain.write_bytes(pickle.dumps({"weight": _Bomb(mark)}))
    for hostile in (file, plain):
        with pytest.raises(UsageError, match=r"Cannot read .*"):
            read(hostile)
    assert not mark.exists()
    with pytest.raises(UsageError, match="it holds more than weights, and nothing of it was run"):
        read(file)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged, or no checkpoint"),
        (b"import torch\n", "damaged, or no checkpoint"),
        (b"PK\x03\x04" + b"\0" * 50, "damaged, or no checkpoint"),
        (os.urandom(200), "Cannot read"),
    ],
)
def test_what_is_no_checkpoint_is_told(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "w.pt"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        read(file)


def test_a_cut_checkpoint_and_a_missing_one_are_told(tmp_path: Path) -> None:
    file = tmp_path / "w.pt"
    torch.save(_state(), file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(UsageError, match="damaged, or no checkpoint"):
        read(file)
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "no.pt")


@pytest.mark.parametrize(
    ("content", "words"),
    [({}, "an empty dict"), ([1, 2], "a list"), ({"epoch": 3}, "a dict of epoch"), (7, "a int")],
)
def test_a_file_without_weights_is_told(tmp_path: Path, content: object, words: str) -> None:
    file = tmp_path / "w.pt"
    torch.save(content, file)
    with pytest.raises(UsageError, match=f"holds no weights: {words}"):
        read(file)


def test_the_weights_of_another_model_are_told_by_name(tmp_path: Path) -> None:
    file = tmp_path / "w.pt"
    torch.save(_state(), file)
    with pytest.raises(UsageError, match=r"of another shape 0.weight"):
        load_into(nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)), file)
    with pytest.raises(UsageError, match=r"not in the model 1.weight, 1.bias, 1.running_mean and"):
        load_into(nn.Sequential(nn.Linear(3, 2)), file)
