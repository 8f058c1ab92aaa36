"""One pass over a tensor's memory for all of its sums, in C where that could be compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

LIBRARY = Path(__file__).with_name("_sums.so")
_VERSION = 1
_NAMES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
}

_Function = Callable[[int, int, Any], None]
_buffer: Callable[[], Any] = cast(Any, ctypes.c_double * 6)


class Sums(NamedTuple):
    """What one pass finds.

    Attributes:
        shift: A number near the mean, or 0.
        total: Sum of the distances from it.
        square: Sum of their squares; not finite if an element is not.
        low: Least element, unless one is NaN.
        high: Greatest element, likewise.
        nonzero: Elements that are not 0.
    """

    shift: float
    total: float
    square: float
    low: float
    high: float
    nonzero: float


def load(path: Path) -> dict[torch.dtype, _Function]:
    """The functions of the library at a path, by the type they read; none if it has not these.

    They keep Python's lock: nobody can free what they read, and a pass takes less than to get the
    lock back.
    """
    try:
        library = ctypes.PyDLL(str(path))
        if library.traindx_sums_version() != _VERSION:
            return {}
        functions = {dtype: library[f"traindx_{name}"] for dtype, name in _NAMES.items()}
    except (OSError, AttributeError):
        return {}
    for function in functions.values():
        function.argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        function.restype = None
    return cast("dict[torch.dtype, _Function]", functions)


FUNCTIONS = load(LIBRARY)
"""By the type they read; empty where nothing could be compiled."""


def reads(tensor: Tensor) -> bool:
    """Whether `sums` can be asked of a tensor on the CPU: its elements lie one after another."""
    return tensor.dtype in FUNCTIONS and tensor.is_contiguous() and not tensor.is_neg()


def sums(tensor: Tensor) -> Sums:
    """The sums of a tensor that it `reads`, of at least one element."""
    found = _buffer()
    FUNCTIONS[tensor.dtype](tensor.data_ptr(), tensor.numel(), found)
    return Sums(*found)
