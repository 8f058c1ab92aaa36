"""What a framework has to say so that states can be carried from it and to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from traindx.messages import Message
from traindx.norm.arrays import Array
from traindx.norm.convert.content import Content
from traindx.norm.convert.state import NormState
from traindx.norm.presets import preset
from traindx.norm.spec import NormSpec


@dataclass(frozen=True, slots=True)
class Hint:
    """What the user says of layers whose file does not tell.

    Attributes:
        pattern: Their names, with `*` and `?`.
        spec: What they compute.
        given: The options that were named.
    """

    pattern: str
    spec: NormSpec
    given: tuple[str, ...] = ()


Hints = Callable[[str], "Hint | None"]
"""What is said of the layer of a name, if anything is."""


def by_pattern(hints: Sequence[Hint]) -> Hints:
    """Of several hints that a name fits, the last."""

    def found(name: str) -> Hint | None:
        return next((hint for hint in reversed(hints) if fnmatchcase(name, hint.pattern)), None)

    return found


@dataclass(frozen=True, slots=True)
class Found:
    """What a file holds.

    Attributes:
        states: Its normalization layers.
        refused: Those that cannot be carried, each with the reason.
        others: How many arrays belong to other layers.
    """

    states: Sequence[NormState]
    refused: Mapping[str, Message] = field(default_factory=dict[str, Message])
    others: int = 0


spec_of_preset = lru_cache(maxsize=1024)(preset)
"""A preset with its options; a model has hundreds of layers, and few kinds of them."""


@dataclass(frozen=True, slots=True)
class Layer:
    """How a layer is made in a framework.

    Attributes:
        call: The class, as it is written in a program.
        positional: Arguments without a name.
        named: Arguments by name.
    """

    call: str
    positional: tuple[object, ...] = ()
    named: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def code(self) -> str:
        """The line of a program that makes it."""
        words = [str(value) for value in self.positional]
        words += [f"{key}={value!r}" for key, value in self.named.items()]
        return f"{self.call}({', '.join(words)})"


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework.

    Attributes:
        name: As the command line has it.
        presets: The preset of each kind of layer that it has.
        axis: Where its channels are by default.
        suffixes: The files it is written to; the first is the usual one.
        packages: What must be installed to run its layers.
        reads: Layers of a file.
        layer: How a layer is made; channels are a word where nobody knows their number.
        writes: Layers into a new file.
        runs: The output of the framework's own layer in evaluation, for an input in float32.
        counts: Whether it keeps a counter of batches.
        names: A layer's name as it may be there.
    """

    name: str
    presets: Mapping[str, str]
    axis: int
    suffixes: tuple[str, ...]
    packages: tuple[str, ...]
    reads: Callable[[Content, Hints], Found]
    layer: Callable[[NormState, int | str], Layer]
    writes: Callable[[Path, Sequence[NormState]], None]
    runs: Callable[[NormState, Array], Array]
    counts: bool = False
    names: Callable[[str], str] = str
