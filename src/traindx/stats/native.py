"""One pass over a tensor's memory for all of its sums, in C where that could be compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Any, cast

import torch
from torch import Tensor

LIBRARY = Path(__file__).with_name("_sums.so")
_VERSION = 2
_NAMES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
}

_Function = Callable[[bytes, Any], None]
_asked = Struct("=qqq").pack
_room: Callable[[], Any] = cast(Any, ctypes.c_double * 6)
_found = Struct("=6d").unpack

Sums = tuple[float, float, float, float, float, float]
"""What one pass finds: shift, total, square, low, high, nonzero.

The shift is a number near the mean, or 0; total and square are the sums of the distances from it
and of their squares, the latter not finite if an element is not. Low and high are the least and the
greatest element, unless one is NaN; nonzero is how many elements are not 0, where that was asked.
"""


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
        function.restype = None
    return cast("dict[torch.dtype, _Function]", functions)


FUNCTIONS = load(LIBRARY)
"""By the type they read; empty where nothing could be compiled."""


def sums(tensor: Tensor, size: int, *, zeros: bool) -> Sums | None:
    """The sums of a tensor on the CPU, of `size` elements, at least one.

    None of one that it cannot read: its elements must lie one after another.
    """
    function = FUNCTIONS.get(tensor.dtype)
    if function is None or not tensor.is_contiguous() or tensor.is_neg():
        return None
    # Bytes and room are handed over as they are, in a third of the time of three numbers.
    found = _room()
    function(_asked(tensor.data_ptr(), size, zeros), found)
    return _found(found)
