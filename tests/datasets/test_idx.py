"""The IDX reader and its inverse."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx.datasets.idx import encode_idx, read_idx
from traindx.errors import DataError

EXTENTS = st.integers(0, 5)


@given(shape=st.tuples(EXTENTS) | st.tuples(EXTENTS, EXTENTS, EXTENTS), seed=st.integers(0, 99))
def test_an_array_survives_encoding_and_reading(shape: tuple[int, ...], seed: int):
    array = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(read_idx(io.BytesIO(encode_idx(array)), "x"), array)


def test_the_header_is_the_one_the_publisher_writes():
    encoded = encode_idx(np.array([[[7, 8, 9]]], np.uint8))
    assert encoded == bytes.fromhex("00000803 00000001 00000001 00000003 070809")


def test_arrays_in_one_stream_are_read_one_after_another():
    first, second = np.arange(3, dtype=np.uint8), np.arange(4, dtype=np.uint8)
    stream = io.BytesIO(encode_idx(first) + encode_idx(second))
    np.testing.assert_array_equal(read_idx(stream, "x"), first)
    np.testing.assert_array_equal(read_idx(stream, "x"), second)


def test_a_read_array_is_writable():
    array = read_idx(io.BytesIO(encode_idx(np.zeros(3, np.uint8))), "x")
    array[0] = 1
    assert array.tolist() == [1, 0, 0]


@pytest.mark.parametrize("length", [0, 3, 4, 7, 10])
def test_a_truncated_file_is_named(length: int):
    data = encode_idx(np.arange(3, dtype=np.uint8))[:length]
    with pytest.raises(DataError, match="`labels` is truncated"):
        read_idx(io.BytesIO(data), "labels")


def test_a_header_that_promises_more_than_fits_in_memory_is_a_truncated_file():
    header = b"\x00\x00\x08\x03" + b"\xff" * 12
    with pytest.raises(DataError, match="`images` is truncated"):
        read_idx(io.BytesIO(header + bytes(9)), "images")


@pytest.mark.parametrize(
    "data", [b"<html><body>", b"\x00\x00\x0d\x01" + bytes(9), b"\x00\x00\x08\x02" + bytes(9)]
)
def test_what_is_no_idx_of_bytes_is_named_with_its_first_bytes(data: bytes):
    with pytest.raises(DataError, match=f"`page` should be an IDX file.*{data[:4].hex(' ')}"):
        read_idx(io.BytesIO(data), "page")
