"""Checkpoints that want to harm: refused or told, no code run, no traceback, in bounded time."""

from __future__ import annotations

import io
import json
import os
import pickle
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.cli.twins import Command

MARK = "harmed.txt"


class Bomb:
    """Makes a file where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {MARK}",)


def bn() -> dict[str, Any]:
    return dict(nn.BatchNorm1d(3).state_dict())


def nested_in_itself() -> dict[str, Any]:
    state: dict[str, Any] = {}
    state["model"] = state["state_dict"] = state
    return state


def deep(levels: int) -> dict[str, Any]:
    state: dict[str, Any] = bn()
    for _ in range(levels):
        state = dict.fromkeys(("state_dict", "model", "net", "module", "weights", "params"), state)
    return state


def huge() -> dict[str, Any]:
    many = torch.zeros(1).expand(10**13)
    return {"a.running_mean": many, "a.running_var": many, "b.weight": many}


def named(name: str) -> dict[str, Any]:
    return {f"{name}.{leaf}": value - 2 for leaf, value in bn().items() if "batches" not in leaf}


REFUSED: dict[str, Callable[[], Any]] = {
    "bomb": Bomb,
    "bomb beside weights": lambda: {"state_dict": bn(), "optimizer": Bomb()},
    "bomb for a name": lambda: {Bomb(): torch.ones(1)},
    "no weights": lambda: {"lr": 0.1},
    "a list": lambda: [torch.ones(3)],
    "empty": dict,
    "itself": nested_in_itself,
    "names that are numbers": lambda: {1: torch.ones(2)},
}
TOLD: dict[str, Callable[[], Any]] = {
    "markup": lambda: named("[bold red]<script>alert(1)</script>[/]"),
    "control": lambda: named("a\x1b[2J\x07\r\n\u202e"),
    "shapes": lambda: bn() | {"running_var": torch.ones(2, 2)},
    "nan": lambda: bn() | {"running_mean": torch.full((3,), float("nan"))},
    "complex": lambda: bn() | {"running_mean": torch.ones(3, dtype=torch.complex64)},
    "integers": lambda: bn() | {"running_var": torch.full((3,), -4)},
    "truth": lambda: bn() | {"num_batches_tracked": torch.tensor([True, False])},
    "huge": huge,
}


def judged(traindx: Command, file: Path) -> tuple[int, str, str]:
    start = time.process_time()
    code, out, err = traindx("norm", "audit", file)
    assert time.process_time() - start < 20
    assert not Path(MARK).exists()
    assert all(character.isprintable() or character == "\n" for character in out + err)
    return code, out, err


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "w.pt"


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_state_is_refused(traindx: Command, file: Path, name: str) -> None:
    torch.save(REFUSED[name](), file)
    code, out, err = judged(traindx, file)
    assert (code, out) == (2, "")
    assert str(file) in err


@pytest.mark.parametrize("name", TOLD)
def test_what_is_wrong_with_a_state_is_told(traindx: Command, file: Path, name: str) -> None:
    torch.save(TOLD[name](), file)
    code, out, err = judged(traindx, file)
    assert (code, err) == (1, "")
    assert "error" in out
    _, text, _ = traindx("norm", "audit", file, "--json", "-")
    assert json.loads(text)["findings"]


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_plain_pickle_is_refused(traindx: Command, file: Path, protocol: int) -> None:
    file.write_bytes(pickle.dumps(Bomb(), protocol))
    assert judged(traindx, file)[0] == 2


def test_a_state_within_states_is_found_in_bounded_time(traindx: Command, file: Path) -> None:
    torch.save(deep(2), file)
    assert judged(traindx, file)[0] == 0
    torch.save(deep(60), file)
    assert judged(traindx, file)[0] == 2


@pytest.mark.parametrize("kept", [0, 1, 20, 0.5, 0.95])
def test_what_is_cut_off_is_refused(traindx: Command, file: Path, kept: float) -> None:
    buffer = io.BytesIO()
    torch.save(bn(), buffer)
    whole = buffer.getvalue()
    file.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    assert judged(traindx, file)[0] == 2


def test_flipped_bytes_are_refused_or_told(traindx: Command, file: Path) -> None:
    buffer = io.BytesIO()
    torch.save(bn(), buffer)
    whole = buffer.getvalue()
    for place in range(0, len(whole), max(len(whole) // 60, 1)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        assert judged(traindx, file)[0] in (0, 1, 2)


def test_a_zip_that_claims_more_than_it_has_is_refused(traindx: Command, file: Path) -> None:
    """The storage of a tensor is said to be larger than its bytes."""
    torch.save(bn(), file)
    with zipfile.ZipFile(file) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content[:1] if "/data/" in name else content)
    assert judged(traindx, file)[0] == 2


def test_hundred_thousand_entries_take_seconds(traindx: Command, file: Path) -> None:
    one = torch.full((2,), -1.0)
    state = {f"l{i}.{leaf}": one for i in range(5000) for leaf in ("running_mean", "running_var")}
    torch.save(state | {f"x{i}": one for i in range(90_000)}, file)
    code, out, _ = judged(traindx, file)
    assert code == 1
    assert "and 4994 more" in out
    assert len(out) < 2000


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_files_that_are_none_are_refused(traindx: Command, tmp_path: Path, suffix: str) -> None:
    for path in (tmp_path, tmp_path / f"absent{suffix}"):
        code, _, err = traindx("norm", "audit", path)
        assert code == 2
        assert "Cannot read" in err or "safetensors" in err
