"""Samples of several tensors on the CPU, read together in C where that could be compiled.

The elements of a sample lie far apart, where nobody has read lately: NumPy waits for the memory
again and again, which C asks for ahead of time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, cast

from traindx.stats import native
from traindx.stats.memory import Array

TOGETHER = 16
"""Elements in a row of a sample; the C source has the same number."""

_place = Struct("=5q").pack  # as the C source has them, and their kinds
_KINDS = {"<f4": 0, "<f8": 1, "<i8": 2}


def doubles(size: int) -> Callable[[], Any]:
    """What makes room for so many; NumPy takes a view of it."""
    return cast(Any, ctypes.c_double * size)


class Samples:
    """Samples of several tensors, read as one.

    Args:
        table: Where they lie and how.
        sizes: Elements of each.
    """

    def __init__(self, table: bytes, sizes: Sequence[int]) -> None:
        self._table = table
        self._size = sum(sizes)
        self._found = doubles(2 * len(sizes))()

    @staticmethod
    def of(samples: Sequence[Array]) -> Samples | None:
        """Of these arrays; None if they cannot be read like this."""
        if not (samples and native.FUNCTIONS):
            return None
        rows: list[bytes] = []
        for sample in samples:
            width, interface = sample.itemsize, sample.__array_interface__
            kind = _KINDS.get(interface["typestr"])
            is_in_rows = sample.shape[1:] == (TOGETHER,) and sample.strides[1] == width
            if kind is None or not sample.size or not (is_in_rows or sample.flags.c_contiguous):
                return None
            apart = sample.strides[0] // width if is_in_rows else TOGETHER
            rows.append(_place(interface["data"][0], apart, *divmod(sample.size, TOGETHER), kind))
        # An address of 0 says that there are no more.
        return Samples(b"".join([*rows, bytes(8)]), [sample.size for sample in samples])

    def moved(self, kept: Any) -> list[float]:
        """Keep what they hold now, one after another in float64.

        Args:
            kept: Room with what was kept of them, if anything; it gets what they hold now.

        Returns:
            Of each the RMS of what was kept, and the norm of the change over that before.

        Raises:
            ValueError: There is room for more or fewer, as where a layer has odd buffers.
        """
        if len(kept) != self._size:  # C would not notice
            raise ValueError(f"{self._size} numbers do not fit into room for {len(kept)}")
        native.FUNCTIONS["moved"](self._table, kept, self._found)
        return self._found[:]
