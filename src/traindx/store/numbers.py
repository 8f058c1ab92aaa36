"""Several numbers as the bytes of one column, exactly and no longer than need be."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence

from traindx.store.codec import MalformedError

MOST = 65_536
"""Numbers in one vector; in memory they are eight times as large as in the file."""


def packed(values: Sequence[float]) -> bytes:
    """Numbers of 4 bytes each where that loses nothing, else of 8; little-endian."""
    assert len(values) <= MOST
    exact, short = array("d", values), array("f", values)
    numbers = short if array("d", short).tobytes() == exact.tobytes() else exact
    return _turned(numbers).tobytes()


def unpacked(count: object, blob: object) -> tuple[float, ...]:
    """The numbers again.

    Raises:
        MalformedError: There are too many, or not `count`.
    """
    if not isinstance(count, int) or not 0 <= count <= MOST:
        raise MalformedError(f"expected at most {MOST:,} numbers, found {count!r:.20}")
    if not isinstance(blob, bytes) or len(blob) not in (4 * count, 8 * count):
        raise MalformedError(f"expected the bytes of {count} numbers")
    numbers = array("f" if len(blob) == 4 * count else "d", blob)
    return tuple(_turned(numbers))


def _turned(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
