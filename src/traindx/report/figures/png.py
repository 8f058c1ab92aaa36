"""Pixels as a PNG file in a data address (PNG specification, third edition, sections 5 and 11)."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TRUECOLOUR_WITH_ALPHA = 6


def data_address(pixels: NDArray[np.uint8]) -> str:
    """An image of red, green, blue and opacity [height, width, 4] as `data:image/png;base64,…`."""
    height, width, _ = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, _TRUECOLOUR_WITH_ALPHA, 0, 0, 0)
    rows: NDArray[Any] = np.reshape(pixels, (height, 4 * width))
    unfiltered = np.pad(rows, ((0, 0), (1, 0)))  # each row begins with its filter, 0 for none
    body = zlib.compress(unfiltered.tobytes(), 9)
    chunks = (_chunk(b"IHDR", head), _chunk(b"IDAT", body), _chunk(b"IEND", b""))
    return (
        "data:image/png;base64,"
        + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)
