"""What a target is: something that answers one question about one layer at a time.

A target keeps nothing between questions. Each `Call` has a layer built, its state set, and run
once; the `Answer` is all that can be seen of it. A framework is one file in `targets`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from traindx.errors import UsageError
from traindx.norm.conformance.precision import Numbers, numbers

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""Colours, which some frameworks put into their errors."""


@dataclass(frozen=True, slots=True)
class Call:
    """One question.

    Attributes:
        layer: The layer, as its framework spells it.
        x: The input, in float64, as `dtype` can hold it.
        dtype: What it is given as.
        options: What is asked for, in our words: `momentum` is the weight of the new value. What is
            not here is left to the target's default.
        weight: Along the affine axes; None leaves the layer as it begins.
        bias: As `weight`.
        running: Running mean and variance before; None leaves the layer as it begins.
        dy: Gradient by the output; None asks for no gradients.
        mask: True where an element counts; None gives no mask.
        training: Whether in training or in evaluation.
        memory: How the input lies in memory, as `precision.laid_out` has it.
    """

    layer: str
    x: Numbers
    dtype: str = "float32"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    weight: Numbers | None = None
    bias: Numbers | None = None
    running: tuple[Numbers, Numbers] | None = None
    dy: Numbers | None = None
    mask: Numbers | None = None
    training: bool = True
    memory: str = "contiguous"

    def where(self, **changes: Any) -> Call:
        """The same question but for `changes`."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was seen.

    Attributes:
        y: The output, in float64.
        dtype: Its type.
        dx: Gradient by the input, if asked for.
        dweight: Gradient by the weight.
        dbias: Gradient by the bias.
        running: Running mean and variance afterwards.
        batches: The counter of batches afterwards.
        affine: Whether the layer has a weight, and a bias; None if that cannot be seen.
        raised: What it said instead of answering; empty if it answered.
        lacks: Why it was not asked at all: the target has no such layer, option or type.
        overwrote: Whether it has written into its input.
    """

    y: Numbers = field(default_factory=lambda: np.empty(0))
    dtype: str = ""
    dx: Numbers | None = None
    dweight: Numbers | None = None
    dbias: Numbers | None = None
    running: tuple[Numbers, Numbers] | None = None
    batches: int | None = None
    affine: tuple[bool, bool] | None = None
    raised: str = ""
    lacks: str = ""
    overwrote: bool = False

    @property
    def given(self) -> bool:
        """Whether there is an output."""
        return not self.raised and not self.lacks


class UnsupportedError(Exception):
    """A target has no words for what is asked: no such layer, option, mask or type."""


class NotInstalledError(Exception):
    """A framework is not there, or not as it is needed."""


class NoAnswerError(UsageError):
    """A layer of the user's does not return; nothing more is asked of it."""


class Target(Protocol):
    """Somebody's normalization layers."""

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        ...

    @property
    def version(self) -> str:
        """Of what answers, as `torch 2.13.0`."""
        ...

    @property
    def layers(self) -> Mapping[str, str]:
        """Its layers as it spells them, each with the family of `traindx.norm.layers` it is of."""
        ...

    @property
    def slow(self) -> bool:
        """Whether a question costs seconds, so that few are asked."""
        ...

    def run(self, call: Call) -> Answer:
        """The answer to one question; what it raises, but `UnsupportedError`, is an answer."""
        ...

    def code(self, call: Call, aspect: str) -> str:
        """Source that makes `got`, that array of the answer in NumPy, for a program of its own.

        NumPy is `np`, and what `call` gives are NumPy arrays in float64: `x`, `weight`, `bias`,
        `running_mean`, `running_var`, `dy`, `mask`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A target that can be asked for by name.

    Attributes:
        name: On the command line.
        make: Imports the framework and gives the target.
        install: The package that brings it.
        environment: What has to stand in the environment before the framework is imported.
    """

    name: str
    make: Callable[[], Target]
    install: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def ask(target: Target, call: Call) -> Answer:
    """A target's answer, checked; its own failure is an answer and never ours."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            answer = target.run(call)
            return _checked(call, answer)
    except UnsupportedError as why:
        return Answer(lacks=str(why) or "not supported")
    except (KeyboardInterrupt, NoAnswerError):
        raise
    except BaseException as error:  # of somebody else's code: it may even leave the program
        return Answer(raised=described(error))


def described(error: BaseException) -> str:
    """An error in a line: its class and the first two lines it says."""
    try:
        text = _ANSI.sub("", str(error))
    except Exception:  # its own `__str__` fails
        text = ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = " ".join(lines[:2])[:200]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _checked(call: Call, answer: Answer) -> Answer:
    """The answer with its arrays in float64; what does not fit the question is said."""
    if not answer.given:
        return answer
    y = numbers(answer.y)
    if y.shape != call.x.shape:
        return Answer(raised=f"an output of shape {y.shape} for an input of shape {call.x.shape}")
    if answer.dx is not None and answer.dx.shape != call.x.shape:
        return Answer(
            raised=f"a gradient of shape {answer.dx.shape} for an input of shape {call.x.shape}"
        )
    return replace(answer, y=y)
