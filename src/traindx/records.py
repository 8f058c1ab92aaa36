"""The narrow waist: the frozen items that capture writes and everything else reads.

A step is one optimizer step, counted from 0; optimizers that take turns (a GAN's two) share one
step number. What comes before training has step -1. Every item is plain data: no tensor passes
this line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

from traindx.facts import Facts, Json


class Site(NamedTuple):
    """A place in a run: a module or parameter by its dotted path, inside a model by name."""

    model: str
    fqn: str = ""

    def __str__(self) -> str:
        return self.fqn or self.model or "run"

    @property
    def models(self) -> tuple[str, ...]:
        """The models named here: of a loss, all that it reaches."""
        return tuple(self.model.split("+"))


RUN = Site("")
"""The site of what concerns the run as a whole."""


class Point(str, Enum):
    """What of a site was measured."""

    INPUT = "input"
    OUTPUT = "output"
    OUTPUT_GRAD = "output_grad"
    PARAM = "param"
    GRAD = "grad"
    APPLIED_GRAD = "applied_grad"
    ATTENTION = "attention"
    """Weights and logits inside the module, of which scalars tell."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class TensorStats:
    """Statistics of one tensor, in a form that merges exactly.

    Attributes:
        count: Elements.
        mean: Mean of the elements; NaN if one is not finite.
        m2: Sum of squared deviations from the mean.
        min: Least element.
        max: Greatest element.
        nonfinite: NaN and infinite elements; at least 1 if any, exact on the CPU.
        sampled: Elements looked at one by one for `zeros`.
        zeros: Elements of the sample that are exactly 0.
    """

    count: int
    mean: float
    m2: float
    min: float
    max: float
    nonfinite: int = 0
    sampled: int = 0
    zeros: int = 0

    def merge(self, other: TensorStats) -> TensorStats:
        """The statistics of both tensors' elements together (Chan, Golub & LeVeque 1979)."""
        if not self.count:
            return other
        if not other.count:
            return self
        count = self.count + other.count
        delta = other.mean - self.mean
        return TensorStats(
            count=count,
            mean=self.mean + delta * other.count / count,
            m2=self.m2 + other.m2 + delta * delta * self.count * other.count / count,
            min=_least(self.min, other.min),
            max=-_least(-self.max, -other.max),
            nonfinite=self.nonfinite + other.nonfinite,
            sampled=self.sampled + other.sampled,
            zeros=self.zeros + other.zeros,
        )

    @property
    def mean_square(self) -> float:
        """Mean of the squared elements."""
        return self.mean * self.mean + self.m2 / self.count if self.count else math.nan


def _least(a: float, b: float) -> float:
    # min() would drop a NaN or keep it depending on the order of its arguments.
    return math.nan if math.isnan(a) or math.isnan(b) else min(a, b)


@dataclass(frozen=True, slots=True)
class Record:
    """The statistics of one tensor at one step."""

    step: int
    site: Site
    point: Point
    stats: TensorStats


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number at one step; `quantity` is a name of `traindx.quantities`."""

    step: int
    quantity: str
    value: float
    site: Site = RUN


@dataclass(frozen=True, slots=True)
class Vector:
    """Several numbers of one kind at one step: a channel or a histogram bin each.

    They are written ever more rarely as a run goes on, so that a run file stays small.
    """

    step: int
    quantity: str
    site: Site
    values: tuple[float, ...]


class EventKind(str, Enum):
    """What can happen in a run."""

    STARTED = "started"
    """The run began; detail: the header (id, command, versions)."""
    ENDED = "ended"
    """The run ended; detail: exit_code, steps, measured_steps, overhead_fraction, seconds."""
    MEASURED = "measured"
    """A measured step is complete: everything of it has been written."""
    EVALUATION = "evaluation"
    """Forward passes without gradient; detail: forwards, training (the model's mode flag)."""
    AMP_SKIPPED = "amp-skipped"
    """A GradScaler skipped the optimizer's step."""
    CADENCE = "cadence"
    """The interval between measured steps changed; detail: every, reason."""
    SKIPPED = "skipped"
    """Something was not measured; detail: point, reason."""
    ORIGIN = "origin"
    """A batch whose loss or gradient was not finite was replayed; site: the first module at fault.

    detail: phase (`forward` or `backward`; `loss` for the loss function; `input` or `parameter` if
    it was there before), operation, index (of the first element), shape, count (of elements),
    inputs (the least and greatest of each tensor that went in), input_min, input_max, in_loss
    (whether a backward operation is the loss function's); or reason, if the replay did not show it.
    """
    NOTE = "note"
    """Something a reader must know; detail: text."""
    PROBE = "probe"
    """A probe has looked before training, or has not.

    detail: name, writes (quantities), trains; seconds and estimate, or reason if it did not look;
    trace, if something was not as before afterwards.
    """
    OBSERVED = "observed"
    """What a probe has seen besides numbers; detail: probe, and what is its own."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened before step `step` was complete."""

    step: int
    kind: EventKind
    site: Site = RUN
    detail: dict[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True)
class Description:
    """Facts as they stood at one step."""

    step: int
    facts: Facts


Item = Record | Scalar | Vector | Event | Description


class Sink(Protocol):
    """Where items go: the store and the rule engine."""

    def write(self, items: Sequence[Item]) -> None:
        """Take items, in order of step."""
        ...

    def close(self) -> None:
        """No more items will come."""
        ...
