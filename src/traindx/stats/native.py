"""One pass over a tensor's memory for all of its sums, in C where that could be compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from struct import Struct
from typing import Any, cast

import torch
from torch import Tensor

from traindx.stats.rows import Row

LIBRARY = Path(__file__).with_name("_sums.so")
_VERSION = 3
_READING = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
}
"""The function that reads a tensor, by its type."""

_Function = Callable[..., None]
_asked = Struct("=3q").pack
_room: Callable[[], Any] = cast(Any, ctypes.c_double * 8)
_numbers = Struct("=q4d2qd").unpack  # as the C source has them
_as_row: Callable[[Iterable[float]], Row] = partial(cast(Any, tuple).__new__, Row)
"""What `Row(...)` comes to, without a call of Python in between."""


def load(path: Path) -> dict[str, _Function]:
    """The functions of the library at a path, by name; none at all if it has not each of them.

    They keep Python's lock: nobody can free what they read, and a pass takes less than to get the
    lock back.
    """
    try:
        library = ctypes.PyDLL(str(path))
        if library.traindx_sums_version() != _VERSION:
            return {}
        names = (*_READING.values(), "moved")  # which `samples.py` calls
        functions = {name: library[f"traindx_{name}"] for name in names}
    except (OSError, AttributeError):
        return {}
    for function in functions.values():
        function.restype = None
    return cast("dict[str, _Function]", functions)


FUNCTIONS = load(LIBRARY)
"""By name; empty where nothing could be compiled."""


def row(tensor: Tensor, size: int, *, zeros: bool) -> Row | None:
    """The sums of a tensor on the CPU, of `size` elements, at least one.

    None of one that it cannot read: its elements must lie one after another. `nonfinite` is -1
    where one pass is not enough; then total and m2 are not to be relied on.
    """
    function = FUNCTIONS.get(_READING.get(tensor.dtype, ""))
    if function is None or not tensor.is_contiguous() or tensor.is_neg():
        return None
    # Bytes and room are handed over as they are, in a third of the time of three numbers.
    room = _room()
    function(_asked(tensor.data_ptr(), size, zeros), room)
    return _as_row(_numbers(room))
