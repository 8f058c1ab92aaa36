"""`.msgpack`: Flax's bytes of a tree of arrays, by the package msgpack.

Flax marks an array as extension 1 and a number of NumPy's as 3, each packed as shape, type, bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from traindx.errors import UsageError
from traindx.messages import say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import (
    BFLOAT16,
    Content,
    Name,
    Stored,
    unreadable,
    whole,
    widened,
)
from traindx.norm.convert.formats.libraries import library

SUFFIXES = (".msgpack",)
_LARGEST = 2**32
_LONGEST = 100_000
"""Entries of a list or a level of the tree: the package makes room for what is claimed."""
_DEEPEST = 64
_ARRAY, _NUMBER = 1, 3
_TYPES = {"float64", "float32", "float16", BFLOAT16, "int64", "int32", "uint32", "uint8", "int8"}


def read(path: Path) -> Content:
    """The arrays of a tree, by the names on their way.

    Raises:
        UsageError: It is no such file.
    """
    library("msgpack")
    data = whole(path, _LARGEST)
    try:
        tree = _unpacked(data)
        if not isinstance(tree, dict):
            raise TypeError("no tree")
        arrays = {
            name: _stored(path, packed)
            for name, packed in _flat(cast("dict[object, object]", tree), ())
        }
    except UsageError:
        raise
    except Exception as error:  # a hostile file can make its reader fail in any way
        raise unreadable(path, say("it is damaged, or no tree of Flax")) from error
    return Content(path, arrays)


def _unpacked(data: bytes) -> Any:
    return library("msgpack").unpackb(
        data,
        ext_hook=_extended,
        object_pairs_hook=_level,
        strict_map_key=False,
        max_array_len=_LONGEST,
        max_map_len=_LONGEST,
    )


class _Packed(bytes):
    """An array as Flax packs it."""


def _extended(code: int, held: bytes) -> _Packed | None:
    return _Packed(held) if code in {_ARRAY, _NUMBER} else None


def _level(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    """One level of the tree; Flax names the entries of a list by their numbers."""
    level = {str(key): value for key, value in pairs if isinstance(key, str | int)}
    if len(level) < len(pairs):
        raise ValueError("a name stands there twice, or is none")
    return level


def _flat(tree: Mapping[Any, object], above: Name) -> Iterator[tuple[Name, _Packed]]:
    if len(above) > _DEEPEST:
        raise ValueError("too deep")
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(cast("dict[Any, object]", value), (*above, key))
        elif isinstance(value, _Packed):
            yield (*above, key), value


def _stored(path: Path, packed: _Packed) -> Stored:
    """The shape of an array, and its numbers when they are asked for."""
    extents, dtype, raw = _unpacked(packed)
    shape = tuple(int(n) for n in extents)
    if dtype not in _TYPES:
        raise unreadable(path, say("numbers of type {kind} are not read", kind=str(dtype)[:40]))
    if dtype == BFLOAT16:
        library("ml_dtypes")  # lets NumPy know the type
    kind = np.dtype(dtype)
    fits = min(shape, default=0) >= 0 and math.prod(shape) * kind.itemsize == len(raw)
    if not isinstance(raw, bytes) or not fits:
        raise ValueError("an array does not fit its bytes")
    return Stored(shape, lambda: widened(np.frombuffer(raw, kind)).reshape(shape))


def write(path: Path, arrays: Mapping[Name, Array], *, note: str) -> None:
    """A new file with the arrays as a tree.

    Raises:
        UsageError: A layer and an array of another have one name.
    """
    del note
    tree: dict[str, Any] = {}
    for name, values in arrays.items():
        if any(name[:depth] in arrays for depth in range(1, len(name))):
            raise UsageError(
                say(
                    "`{name}` would be in an array of another layer. Give the layer a name of its "
                    "own with `--rename OLD=NEW`.",
                    name=".".join(name),
                )
            )
        level = tree
        for part in name[:-1]:
            level = level.setdefault(part, {})
        level[name[-1]] = values
    path.write_bytes(library("msgpack").packb(tree, default=_extension))


def _extension(values: Array) -> Any:
    package = library("msgpack")
    packed = package.packb((values.shape, values.dtype.name, values.tobytes()))
    return package.ExtType(_ARRAY, packed)
