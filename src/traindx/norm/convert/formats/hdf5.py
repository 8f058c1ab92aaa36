"""`.weights.h5`: Keras' weights in HDF5, read by h5py, and only what lies in the file itself.

A layer is a group with a group `vars`, which is named after the layer and holds its variables by
number; the groups on the way are classes and attributes of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from traindx.errors import UsageError
from traindx.messages import say
from traindx.norm.arrays import Array
from traindx.norm.convert.content import Content, Name, Stored, unreadable
from traindx.norm.convert.formats.libraries import library

SUFFIXES = (".h5", ".hdf5")
_DEEPEST = 64
_MOST = 100_000
VARIABLES = "vars"


def h5py() -> Any:
    """The package that reads HDF5.

    Raises:
        UsageError: It is not installed.
    """
    return library("h5py")


def read(path: Path) -> Content:
    """The variables of a file: the path of their group, the layer's own name, and their number.

    Raises:
        UsageError: It is no such file, or reaches outside itself.
    """
    return Content(path, arrays_of(path, lambda: path.open("rb")))


def arrays_of(path: Path, opened: Any) -> Mapping[Name, Stored]:
    """The variables in what `opened()` reads; `path` is what errors name."""
    package = h5py()
    try:
        with opened() as raw, package.File(raw, "r") as file:
            return dict(_variables(path, opened, file, (), 0))
    except UsageError:
        raise
    except Exception as error:  # a hostile file can make its reader fail in any way
        raise unreadable(path, say("it is damaged, or no weights of Keras")) from error


def _variables(
    path: Path, opened: Any, group: Any, above: Name, depth: int
) -> Iterator[tuple[Name, Stored]]:
    package = h5py()
    if depth > _DEEPEST or len(group) > _MOST:
        raise ValueError("too deep")
    for key in group:
        link = group.get(key, getlink=True)
        if not isinstance(link, package.HardLink):
            raise unreadable(path, say("`{name}` is a link to another place", name=str(key)[:80]))
        entry = group[key]
        if isinstance(entry, package.Group):
            yield from _variables(path, opened, entry, (*above, key), depth + 1)
        elif above and above[-1] == VARIABLES:
            own = group.attrs.get("name")
            layer = own if isinstance(own, str) else ""
            yield (*above[:-1], layer, key), _stored(path, opened, entry)


def _stored(path: Path, opened: Any, entry: Any) -> Stored:
    """One variable; a data set may lie in other files, or claim what nobody stored."""
    if entry.external or entry.is_virtual:
        raise unreadable(path, say("`{name}` is a link to another place", name=entry.name[:80]))
    shape, kind, place = tuple(int(n) for n in entry.shape), entry.dtype, entry.name
    if kind.kind not in "fiu":
        raise ValueError("no numbers")

    def load() -> Array:
        with opened() as raw, h5py().File(raw, "r") as file:
            return np.asarray(file[place])

    return Stored(shape, load)


def write_into(file: BinaryIO, layers: Mapping[Name, tuple[str, list[Array]]]) -> None:
    """Groups with the name of their layer and its variables, as Keras keeps them."""
    with h5py().File(file, "w") as written:
        for place, (name, values) in layers.items():
            group = written.create_group("/".join((*place, VARIABLES)))
            group.attrs["name"] = name
            for number, value in enumerate(values):
                group.create_dataset(str(number), data=value)


def write(path: Path, layers: Mapping[Name, tuple[str, list[Array]]]) -> None:
    """A new file of weights."""
    h5py()  # before there is a file
    with path.open("w+b") as file:
        write_into(file, layers)
