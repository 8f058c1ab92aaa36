"""A picture as PNG holds the pixels that it was made of."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from traindx.report.figures.png import data_address


def decoded(address: str) -> np.ndarray:
    """The pixels of a PNG of unfiltered rows, its checks asserted."""
    head, _, body = address.partition(",")
    data = base64.b64decode(body)
    assert head == "data:image/png;base64"
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(
            kind + content
        )
        chunks[kind] = content
        at += 12 + length
    assert [*chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colour, rest) == (8, 6, [0, 0, 0])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 4 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 4)


def test_the_pixels_come_back() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 5, 4), np.uint8)
    assert (decoded(data_address(pixels)) == pixels).all()
