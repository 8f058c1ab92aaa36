"""The IDX format of the MNIST family: a magic number, the extents, then one byte an element."""

from __future__ import annotations

import math
import struct
import sys
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from traindx.errors import DataError

ByteArray = NDArray[np.uint8]

# Two zero bytes, 8 for "unsigned byte", then the number of axes: labels have one, images three.
_MAGICS = (b"\x00\x00\x08\x01", b"\x00\x00\x08\x03")


def read_idx(stream: BinaryIO, name: str) -> ByteArray:
    """The next array in a stream, which is left at the array's end.

    Args:
        stream: Unpacked IDX data; several arrays may follow each other.
        name: What an error calls the stream.

    Raises:
        DataError: The stream is no IDX of bytes, or ends early.
    """
    magic = _take(stream, 4, name)
    if magic not in _MAGICS:
        raise DataError(
            f"`{name}` should be an IDX file of bytes with one or three axes; it begins with "
            f"`{magic.hex(' ')}`. Replace it with the publisher's file."
        )
    shape = [int.from_bytes(_take(stream, 4, name), "big") for _ in range(magic[3])]
    data = bytearray(_take(stream, math.prod(shape), name))  # writable, as torch wants arrays
    return np.ndarray(shape, np.uint8, data)


def encode_idx(array: ByteArray) -> bytes:
    """An array of one or three axes in IDX."""
    magic = bytes((0, 0, 8, array.ndim))
    assert magic in _MAGICS
    return magic + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def _take(stream: BinaryIO, count: int, name: str) -> bytes:
    data = stream.read(min(count, sys.maxsize))  # a damaged header may ask for more
    if len(data) < count:
        raise DataError(
            f"`{name}` is truncated: {count} bytes should follow where {len(data)} are left. "
            f"Replace it with the publisher's file."
        )
    return data
