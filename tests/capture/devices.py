"""A device that is none: CPU tensors that the host must not read, and a watch on who does."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.library import Library

from traindx.capture import modes, transfer
from traindx.capture.transfer import Copy, Numbers

_TORCH = str(Path(torch.__file__).parent)
_OURS = str(Path(transfer.__file__).parents[1])


@dataclass
class PretendedHost:
    """Takes every tensor for one on a device, and counts how often it is asked for one.

    Attributes:
        copies: How many numbers each copy held.
        waits: Copies that were read before they had arrived.
        arrives: Whether a copy has arrived as soon as it is asked for.
        graph: Whether a CUDA graph is being captured.
        fails: Whether the device fails when it is read.
    """

    copies: list[int] = field(default_factory=list)
    waits: int = 0
    arrives: bool = False
    graph: bool = False
    fails: bool = False

    def at_hand(self, tensor: Tensor) -> bool:
        return False

    def fetch(self, packed: Tensor) -> Copy:
        assert packed.dtype is torch.float64
        assert packed.dim() == 1
        assert not packed.requires_grad
        self.copies.append(packed.numel())
        return _PretendedCopy(packed.numpy(force=True).tolist(), self)

    def capturing(self) -> bool:
        return self.graph


class _PretendedCopy:
    def __init__(self, numbers: Numbers, host: PretendedHost) -> None:
        self._numbers = numbers
        self._host = host

    def done(self) -> bool:
        return self._host.arrives

    def numbers(self) -> Numbers:
        if self._host.fails:
            raise RuntimeError("CUDA error: device-side assert triggered")
        self._host.waits += not self._host.arrives
        return self._numbers


# These call what they have replaced, and so stand between a program and torch.
_BETWEEN = ("taps.py",)
# The first belongs to the guard; the second copies from pinned memory, for which nothing waits; the
# third compares states of generators, which lie on the host always.
_ALLOWED = {PretendedHost.fetch.__code__, transfer.to_device.__code__, modes.differ.__code__}
_READS = ("tolist", "numpy", "cpu", "__array__", "item")


def reader() -> str:
    """Where in traindx what is going on was begun; empty if torch or a program did."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if frame.f_code in _ALLOWED:
            return ""
        if not path.startswith(_TORCH) and path != __file__ and not path.endswith(_BETWEEN):
            if not path.startswith(_OURS):
                return ""
            return f"{Path(path).relative_to(_OURS)}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back
    return ""


_from_numpy = torch.from_numpy


def _array(tensor: Tensor) -> Any:
    return np.from_dlpack(tensor.detach()) if tensor.dtype is not torch.bool else _bools(tensor)


def _bools(tensor: Tensor) -> Any:
    return np.from_dlpack(tensor.detach().view(torch.uint8)).astype(bool)


def _kernels(note: Callable[[str], None]) -> dict[str, Callable[..., Any]]:
    """What makes a host wait for a device, computed without torch, once it is noted."""

    def scalar(tensor: Tensor) -> Any:
        note("item")
        value = tensor.detach().reshape(1)
        wide = value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
        return _array(wide)[0].item()

    def nonzero(tensor: Tensor) -> Tensor:
        note("nonzero")
        wide = tensor != 0
        return _from_numpy(np.argwhere(_bools(wide.contiguous())).reshape(-1, tensor.dim()))

    def equal(one: Tensor, other: Tensor) -> bool:
        note("equal")
        return bool(np.array_equal(_array(one), _array(other)))

    def bincount(tensor: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
        note("bincount")
        return _from_numpy(np.bincount(_array(tensor), minlength=minlength))

    def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
        note("masked_select")
        return _from_numpy(_array(tensor)[_bools(mask)])

    def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
        if output_size is None:
            note("repeat_interleave")
        return _from_numpy(np.repeat(np.arange(repeats.numel()), _array(repeats)))

    return {
        "_local_scalar_dense": scalar,
        "nonzero": nonzero,
        "equal": equal,
        "bincount": bincount,
        "masked_select": masked_select,
        "repeat_interleave.Tensor": repeat_interleave,
    }


@contextmanager
def reads() -> Iterator[list[str]]:
    """Inside, every place of traindx that reads a tensor or copies one to its device is noted.

    Kernels are replaced, which no mode of torch's can hide, and which also shows what torch's own
    operations read on the way.
    """
    found: list[str] = []

    def note(what: str) -> None:
        if where := reader():
            found.append(f"{what} in {where}")

    def noting(original: Any, what: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            note(what)
            return original(*args, **kwargs)

        return call

    kernels = Library("aten", "IMPL")
    patch = pytest.MonkeyPatch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that kernels are replaced
        for name, kernel in _kernels(note).items():
            kernels.impl(name, kernel, "CPU")
    for name in _READS:
        patch.setattr(Tensor, name, noting(getattr(Tensor, name), name))
    # A list is copied to a device from memory that is not pinned, and that waits.
    for name in ("tensor", "as_tensor", "from_numpy"):
        patch.setattr(torch, name, noting(getattr(torch, name), f"torch.{name}"))
    try:
        yield found
    finally:
        patch.undo()
        kernels._destroy()


@contextmanager
def pretended_device() -> Iterator[list[str]]:
    """Inside, every CPU tensor is on a device: the places of traindx that read one all the same."""
    patch = pytest.MonkeyPatch()
    patch.setattr(Tensor, "is_cpu", property(lambda _: False))
    try:
        with reads() as found:
            yield found
    finally:
        patch.undo()
