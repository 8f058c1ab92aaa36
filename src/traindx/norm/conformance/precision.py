"""Floating types by name: their rounding, their range, and how numbers come out of any library."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Numbers: TypeAlias = Any
"""A NumPy array in float64; its static type says less than it costs."""

EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance from 1 to the next number."""
TINY = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}
"""The least normal number."""
WIDE = {"float64": "float64", "float32": "float32", "float16": "float32", "bfloat16": "float32"}
"""The type that a careful layer computes in."""


def rounded(x: Numbers, dtype: str) -> Numbers:
    """`x` as `dtype` can hold it, in float64: rounded to nearest, ties to even."""
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype != "bfloat16":
            narrow: Any = np.asarray(x, dtype)
            return np.asarray(narrow, np.float64)
        bits = x.astype(np.float32).view(np.uint32)
        up = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        short = ((bits + up) & np.uint32(0xFFFF0000)).view(np.float32)
        kept, finite = x.astype(np.float64), np.isfinite(x)
        kept[finite] = short[finite]
        return kept


def numbers(values: Any) -> Numbers:
    """An array of any library in float64; a half type of a library's own is widened by it.

    Raises:
        TypeError: It holds no real numbers.
    """
    if hasattr(values, "detach"):
        # Not `numpy()` at once: it refuses bfloat16, gradients and what is not on the host.
        values = values.detach().cpu().double().numpy()
    array = np.asarray(values)
    if array.dtype.kind not in "fiubV":
        raise TypeError(f"an array of {array.dtype} holds no real numbers")
    return np.array(array.astype(np.float64))  # a copy: what a library owns may change


def dtype_name(values: Any) -> str:
    """The name of an array's type, without the library's."""
    return str(getattr(values, "dtype", type(values).__name__)).rpartition(".")[2]


def laid_out(x: Numbers, memory: str) -> Numbers:
    """The same numbers, otherwise in memory: `contiguous`, `strided` or `sliced`.

    `strided` is a transposed view; `sliced` every second element of a larger array, from an
    offset, with other numbers in between.
    """
    if memory == "strided":
        turned: Numbers = np.ascontiguousarray(x.T)
        return turned.T
    if memory == "sliced":
        around = np.full((*x.shape[:-1], 2 * x.shape[-1] + 3), 77.0, x.dtype)
        around[..., 3::2] = x
        return around[..., 3::2]
    return np.ascontiguousarray(x)
