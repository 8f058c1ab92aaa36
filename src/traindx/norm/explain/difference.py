"""One difference of two layers: where it acts, what it is, and what it does in numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import reduce
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from traindx.facts import Json
from traindx.messages import Message
from traindx.norm.spec import NormSpec

Array = NDArray[np.float64]


class Reach(str, Enum):
    """How far a difference is felt."""

    OUTPUT = "output"
    """Training and evaluation give other numbers."""
    LAYOUT = "layout"
    """The same numbers, if input and weights are laid out otherwise."""
    TRAINING = "training"
    """Evaluation is the same; what training makes of the statistics is not."""
    EDGE = "edge"
    """Only batches of one element, empty ones, and masked elements are treated otherwise."""
    ROUNDING = "rounding"
    """The same in real arithmetic."""


@dataclass(frozen=True, slots=True)
class Channels:
    """What a checkpoint holds of one layer.

    Attributes:
        name: The layer.
        mean: Running means [C]; None if it keeps none.
        var: Running variances [C].
        weight: Its weight [C]; None if it has none.
    """

    name: str
    mean: Array | None = None
    var: Array | None = None
    weight: Array | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """What the explanation may count with.

    Attributes:
        names: What the two layers are called.
        layers: The user's own layers; none without a checkpoint.
        elements: Elements behind a statistic of a training batch, if known.
    """

    names: tuple[str, str] = ("a", "b")
    layers: Sequence[Channels] = ()
    elements: int | None = None

    @property
    def tracked(self) -> list[tuple[str, Array, Array]]:
        """Name, running mean and variance of the layers that keep them."""
        return [
            (layer.name, layer.mean, layer.var)
            for layer in self.layers
            if layer.mean is not None and layer.var is not None
        ]


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of a difference.

    Attributes:
        effect: What it does to a model that is moved from the first layer to the second.
        numbers: The same in numbers, a line each.
        data: Those numbers for other programs.
    """

    effect: Message
    numbers: Sequence[Message] = ()
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class Difference:
    """One answer on which two layers differ.

    Attributes:
        field: Which answer, by its path in `NormSpec`, such as `running.momentum`.
        reach: How far it is felt.
        values: The answers.
        said: What it does.
    """

    field: str
    reach: Reach
    values: tuple[str, str]
    said: Said


Explain = Callable[[NormSpec, NormSpec, Given], Said]


@dataclass(frozen=True, slots=True)
class Field:
    """How one answer is explained.

    Attributes:
        path: The answer.
        reach: How far a difference of it is felt; `narrowed` may say less.
        explain: Says what it does.
        narrowed: The reach of two given layers, where it depends on them.
    """

    path: str
    reach: Reach
    explain: Explain
    narrowed: Callable[[NormSpec, NormSpec], Reach] | None = None

    def difference(self, a: NormSpec, b: NormSpec, given: Given) -> Difference | None:
        """What differs here; None if nothing does, or the answer is part of one that is missing."""
        one, other = answer(a, self.path), answer(b, self.path)
        if one is MISSING or other is MISSING or one == other:
            return None
        if is_dataclass(one) and is_dataclass(other) and not _is_leaf(one):
            return None  # its parts have explanations of their own
        reach = self.narrowed(a, b) if self.narrowed else self.reach
        return Difference(self.path, reach, (shown(one), shown(other)), self.explain(a, b, given))


def explains(
    path: str, reach: Reach, narrowed: Callable[[NormSpec, NormSpec], Reach] | None = None
) -> Callable[[Explain], Field]:
    """Make a field of the function that explains it."""
    return lambda explain: Field(path, reach, explain, narrowed)


class _Missing:
    """No answer: the layer has no such part."""


MISSING = _Missing()


def answer(spec: NormSpec, path: str) -> Any:
    """The answer at a path; `MISSING` where the part that would hold it is None."""

    def step(holder: Any, name: str) -> Any:
        return MISSING if holder is None or holder is MISSING else getattr(holder, name)

    return reduce(step, path.split("."), cast(Any, spec))


def shown(value: object) -> str:
    """An answer in a word or two."""
    if value is None:
        return "none"
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, float):
        return f"{value:g}"
    if is_dataclass(value) and not isinstance(value, type):
        if _is_leaf(value):
            return _axes(value)
        return type(value).__name__
    return str(value)


def _is_leaf(value: object) -> bool:
    """Axes are one answer; other parts hold several."""
    return is_dataclass(value) and [f.name for f in fields(value)] == ["named", "others"]


def _axes(axes: Any) -> str:
    named = ", ".join(map(str, axes.named))
    if not axes.others:
        return named or "-"
    return f"all but {named}" if named else "all"
