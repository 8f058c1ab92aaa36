"""`.safetensors`: named arrays, mapped from the file by the package safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from traindx.messages import say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import Content, Name, Stored, parted, unreadable, widened
from traindx.norm.convert.formats.libraries import library

SUFFIXES = (".safetensors",)
_TYPES = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8"}


def read(path: Path) -> Content:
    """The arrays of a file, none of which is loaded yet.

    Raises:
        UsageError: It is no such file, or its header does not fit its bytes.
    """
    opened = library("safetensors").safe_open
    try:
        with opened(path, framework="numpy") as file:
            named = parted(file.keys())
            arrays = {name: _stored(path, key, file.get_slice(key)) for key, name in named.items()}
    except Exception as error:  # its own error is no class of Python's
        raise unreadable(path, say("it is damaged, or no file of safetensors")) from error
    return Content(path, arrays)


def _stored(path: Path, key: str, entry: Any) -> Stored:
    kind = str(entry.get_dtype())

    def load() -> Array:
        if kind not in _TYPES:
            raise unreadable(path, say("numbers of type {kind} are not read", kind=kind))
        if kind == "BF16":
            library("ml_dtypes")  # lets NumPy know the type
        with library("safetensors").safe_open(path, framework="numpy") as file:
            return widened(file.get_tensor(key))

    return Stored(tuple(entry.get_shape()), load)


def write(path: Path, arrays: Mapping[Name, Array], *, note: str) -> None:
    """A new file; `note` is what its reader takes it for, such as `pt`."""
    named = {".".join(name): np.ascontiguousarray(values) for name, values in arrays.items()}
    saved = library("safetensors", "safetensors.numpy").save(named, {"format": note})
    path.write_bytes(saved)  # so that a full disk is told as any other file's
