"""What a file of weights holds: named arrays, read when they are asked for, and what it tells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from traindx.errors import UsageError
from traindx.messages import Message, say
from traindx.norm.arrays import Array
from traindx.norm.spec import NormSpec

Name = tuple[str, ...]
"""A path in a model, a part for each level."""

LARGEST = 2**24
"""Numbers of a weight, bias or statistic at most."""
LARGEST_KERNEL = 2**28
"""Numbers of a weight that is itself normalized at most: a gibibyte of float32."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An array in a file.

    Attributes:
        shape: As the file says.
        load: Reads it.
    """

    shape: tuple[int, ...]
    load: Callable[[], Array]

    @property
    def count(self) -> int:
        """How many numbers the file says it has."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Told:
    """What a file itself tells of a layer.

    Attributes:
        spec: What it computes.
        roles: What its arrays are, in the order they are stored.
    """

    spec: NormSpec
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """A file of weights.

    Attributes:
        path: The file.
        arrays: Its arrays by name.
        told: Its layers by name, where it tells what they are.
        refused: Its layers by name that cannot be read, each with the reason.
    """

    path: Path
    arrays: Mapping[Name, Stored]
    told: Mapping[str, Told] = field(default_factory=dict[str, Told])
    refused: Mapping[str, Message] = field(default_factory=dict[str, Message])

    def read(self, name: Name, most: int = LARGEST) -> Array:
        """The numbers of an array.

        Raises:
            UsageError: They are too many, not there, or no real numbers.
        """
        stored = self.arrays[name]
        if stored.count > most:
            raise unreadable(
                self.path,
                say(
                    "`{name}` claims {count:,} numbers, where a normalization has {most:,} at most",
                    name=".".join(name),
                    count=stored.count,
                    most=most,
                ),
            )
        other = say("the numbers of `{name}` are not what it says", name=".".join(name))
        try:
            found = np.asarray(stored.load())
        except UsageError:
            raise
        except Exception as error:  # a hostile file can make its reader fail in any way
            raise unreadable(self.path, other) from error
        if tuple(found.shape) != stored.shape or found.dtype.kind not in "fiu":
            raise unreadable(self.path, other)
        return found


def unreadable(path: Path, why: object) -> UsageError:
    """An error that names the file and the reason."""
    return UsageError(say("Cannot read `{file}`: {why}.", file=path, why=why))


def path_of(name: str) -> Name:
    """A shown path as a path; of the model itself it is empty."""
    return tuple(name.split(".")) if name else ()


def dotted(name: Name) -> str:
    """A path as it is shown."""
    return ".".join(name)


def parted(names: Iterable[str]) -> dict[str, Name]:
    """Names of a flat file as paths: by dots, or by slashes where no name has a dot."""
    known = list(names)
    mark = "." if any("." in name for name in known) else "/"
    return {name: tuple(name.split(mark)) for name in known}


BFLOAT16 = "bfloat16"


def widened(values: Array) -> Array:
    """Numbers that NumPy has no type for in float32, which holds each of them exactly."""
    return values.astype(np.float32) if values.dtype.name == BFLOAT16 else values


def whole(path: Path, largest: int) -> bytes:
    """All bytes of a file that its reader takes at once.

    Raises:
        UsageError: It has more than `largest` bytes, or cannot be read.
    """
    try:
        size = path.stat().st_size
        if size <= largest:
            return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error.strerror or error) from error
    raise unreadable(
        path,
        say(
            "it has {size:,} bytes, where {largest:,} are read at most", size=size, largest=largest
        ),
    )
