"""`.npz`: a zip of NumPy's arrays, never of pickled objects."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from traindx.messages import say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import Content, Name, Stored, parted, unreadable

SUFFIXES = (".npz",)


def read(path: Path) -> Content:
    """The arrays of a file by their headers; nothing is unpacked yet.

    Raises:
        UsageError: It is no such file, or one of its arrays is none of numbers.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                info.filename[: -len(".npy")]: info
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
            named = parted(members)
            arrays = {named[key]: _stored(path, archive, info) for key, info in members.items()}
    except OSError as error:
        raise unreadable(path, error.strerror or error) from error
    except Exception as error:  # a hostile file can make its reader fail in any way
        raise unreadable(path, say("it is damaged, or no file of NumPy's arrays")) from error
    return Content(path, arrays)


def _stored(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Stored:
    with archive.open(info) as file:
        shape, dtype = _header(file)
        header = file.tell()
    # A zip may promise anything: what it unpacks to must be what the header says, no byte more.
    if header + math.prod(shape) * dtype.itemsize != info.file_size:
        raise ValueError("an array does not fit its bytes")

    def load() -> Array:
        with zipfile.ZipFile(path) as again, again.open(info) as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    return Stored(shape, load)


def _header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.hasobject:
        raise ValueError("it holds objects")
    return shape, dtype


def write(path: Path, arrays: Mapping[Name, Array], *, note: str) -> None:
    """A new file; arrays are named by dots."""
    del note
    named: dict[str, Any] = {".".join(name): values for name, values in arrays.items()}
    with path.open("wb") as file:
        np.savez(file, **named)
