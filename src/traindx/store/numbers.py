"""Many numbers as the bytes of one column, exactly and no longer than need be; little-endian.

The width of a column follows from its length, so nothing about it is stored.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from traindx.store.codec import MalformedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 65_536
"""Numbers in one vector, and entries in one row of a packed table."""


def packed(values: Sequence[float]) -> bytes:
    """Numbers of 4 bytes each where that loses nothing, else of 8; little-endian."""
    assert len(values) <= MOST
    exact, short = array("d", values), array("f", values)
    numbers = short if array("d", short).tobytes() == exact.tobytes() else exact
    return _turned(numbers).tobytes()


def unpacked(count: object, blob: object) -> array[float]:
    """The numbers again.

    Raises:
        MalformedError: There are too many, or not `count`.
    """
    width = _width(num_of(count), blob, (4, 8))
    assert isinstance(blob, bytes)
    return _turned(array("f" if width == 4 else "d", blob))


def _turned(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def num_of(count: object) -> int:
    """A count of numbers in a column.

    Raises:
        MalformedError: It is none, or too large.
    """
    if not isinstance(count, int) or not 0 <= count <= MOST:
        raise MalformedError(f"expected at most {MOST:,} numbers, found {count!r:.20}")
    return count


def _width(count: int, blob: object, widths: tuple[int, ...]) -> int:
    """Bytes of each number in a column."""
    if isinstance(blob, bytes):
        for width in widths:
            if len(blob) == width * count:
                return width
    raise MalformedError(f"expected the bytes of {count} numbers")


# -- columns of packed tables --------------------------------------------------------------------


def reals_packed(values: NDArray[np.float64]) -> bytes:
    """Numbers of 4 bytes each where that loses nothing, else of 8."""
    import numpy as np

    with np.errstate(all="ignore"):
        short = values.astype("<f4")
    exact = short.astype(np.float64).tobytes() == values.tobytes()
    return (short if exact else values.astype("<f8")).tobytes()


def steps_packed(steps: NDArray[np.int64], first: int) -> bytes:
    """Steps counted from `first`, of as many bytes as the greatest needs."""
    import numpy as np

    return _naturals((steps - np.int64(first)).astype(np.uint64))


def naturals_packed(values: NDArray[np.int64]) -> bytes:
    """Numbers from 0 on of as many bytes as the greatest needs; none if all are 0."""
    return _naturals(values) if values.any() else b""


def _naturals(values: NDArray[Any]) -> bytes:
    most = int(values.max(initial=0))
    width = next(width for width in (1, 2, 4, 8) if most < 1 << (8 * width))
    return values.astype(f"<u{width}").tobytes()


def reals_unpacked(count: int, blob: object) -> NDArray[np.float64]:
    """The numbers of `reals_packed`.

    Raises:
        MalformedError: There are not `count`.
    """
    import numpy as np

    width = _width(count, blob, (4, 8))
    assert isinstance(blob, bytes)
    return np.frombuffer(blob, f"<f{width}").astype(np.float64)


def steps_unpacked(count: int, first: int, blob: object) -> NDArray[np.int64]:
    """The steps of `steps_packed`.

    Raises:
        MalformedError: There are not `count`.
    """
    import numpy as np

    width = _width(count, blob, (1, 2, 4, 8))
    assert isinstance(blob, bytes)
    return np.frombuffer(blob, f"<u{width}").astype(np.int64) + np.int64(first)


def naturals_unpacked(count: int, blob: object) -> NDArray[np.int64]:
    """The numbers of `naturals_packed`.

    Raises:
        MalformedError: There are not `count`, or one is larger than any that is written.
    """
    import numpy as np

    if blob == b"":
        return np.zeros(count, np.int64)
    numbers = steps_unpacked(count, 0, blob)
    if int(numbers.min(initial=0)) < 0:
        raise MalformedError("expected a count, found a number beyond all counts")
    return numbers
