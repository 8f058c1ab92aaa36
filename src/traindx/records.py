"""The narrow waist: the frozen items that capture writes and everything else reads.

A step is one optimizer step, counted from 0; optimizers that take turns (a GAN's two) share one
step number. What comes before training has step -1. Every item is plain data: no tensor passes
this line.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
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
        min: Least element, of those looked at: of a large tensor on the CPU some 16,384.
        max: Greatest element, of those looked at.
        nonfinite: NaN and infinite elements; at least 1 if any, exact on the CPU.
        sampled: Elements looked at for `zeros`; 0 of gradients, in which nobody counts them.
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

    Attributes:
        values: As an array of float64, whatever it is made of: a number there takes a quarter of
            the memory that it takes in a tuple, for as long as a run is held.
    """

    step: int
    quantity: str
    site: Site
    values: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", array("d", self.values))


class EventKind(str, Enum):
    """What can happen in a run."""

    STARTED = "started"
    """The run began; detail: the header (id, command, versions)."""
    ENDED = "ended"
    """The run ended; detail: exit_code, steps, measured_steps, overhead_fraction, seconds."""
    MEASURED = "measured"
    """A measured step is complete: everything of it has been written."""
    EVALUATION = "evaluation"
    """Forward passes without gradient; detail: forwards, training (the model's mode flag).

    Besides, where there are any: dropping (modules that dropped values at random), batch_norms
    (layers that normalized by the batch though they have running statistics), first (of both, by
    fqn), drawing (passes that drew random numbers), written (running statistics that were written).
    """
    COPY = "copy"
    """A model with the parameters of a trained one was evaluated; site: the copy, by its name.

    detail: of (the trained model), parameters (to be trained), equal (of them), differing (the
    first that are not), distance (median over those of the norm of the difference over the norm);
    replica (whether the model is evaluated itself, and this one is trained beside it);
    settings (numbers of its modules that are others, as `norm.eps: 1e-05, 1e-06`), if there are;
    norms, gap (greatest distance of running statistics, as `norm.running_gap`), norm (where),
    counted (batches that the copy's counter says), if both have running statistics.
    """
    MET = "met"
    """What the BatchNorm layers of such a copy were given was compared with their statistics.

    detail: of (the trained model), gap (greatest over the layers of how far from mean 0 and
    deviation 1 they leave it, RMS over channels), norm (where), values (of each channel).
    """
    INPUTS = "inputs"
    """What a model was given in evaluation was compared with what it was trained on.

    detail: trained and evaluated (samples looked at), and what
    `traindx.capture.evaluated_inputs.compare` returns.
    """
    LOADED = "loaded"
    """A state was loaded into a module of a known model; site: the module.

    detail: at (the step it was loaded at), parameters (of the module), loaded (of them), given
    (tensors), used (of those), same (of those: the module's own memory), missing and unexpected
    (the first of each), fits (missing tensors that another name would supply) and rename (how:
    `-prefix.` off the given names, `+prefix.` before them, `-name` out of them).
    """
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

    detail: name, writes (quantities), trains; seconds, estimate, least and most (of the estimate);
    reason, if it says nothing, and failed (whether that is an error of the probe); trace, if
    something was not as before afterwards.
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


@dataclass(frozen=True, slots=True)
class Bundle:
    """The records and scalars of a measured step as plain numbers, a tenth of what objects cost.

    Where it was measured stands in tuples that the bundles of several steps share.

    Attributes:
        step: The step.
        places: Of each record, m of them.
        counts: [4 m]: count, nonfinite, sampled and zeros of each.
        moments: [4 m]: mean, m2, min and max of each.
        names: Quantity and site of each scalar, n of them.
        values: [n]
    """

    step: int
    places: tuple[tuple[Point, Site], ...]
    counts: array[int]
    moments: array[float]
    names: tuple[tuple[str, Site], ...]
    values: array[float]

    def __len__(self) -> int:
        return len(self.places) + len(self.names)

    def rows(self) -> Iterator[tuple[Point, Site, tuple[float, ...]]]:
        """Each record: its place, and its statistics in the order of `TensorStats`."""
        counts, moments = self.counts, self.moments
        for i, (point, site) in enumerate(self.places):
            at = 4 * i
            row = (counts[at], *moments[at : at + 4], *counts[at + 1 : at + 4])
            yield point, site, row

    def items(self) -> Iterator[Record | Scalar]:
        """One by one."""
        for point, site, (count, mean, m2, least, greatest, *rest) in self.rows():
            others = map(int, rest)
            stats = TensorStats(int(count), mean, m2, least, greatest, *others)
            yield Record(self.step, site, point, stats)
        for (quantity, site), value in zip(self.names, self.values, strict=True):
            yield Scalar(self.step, quantity, value, site)


Item = Record | Scalar | Vector | Bundle | Event | Description


def one_by_one(items: Iterable[Item]) -> Iterator[Item]:
    """Items without bundles."""
    for item in items:
        if isinstance(item, Bundle):
            yield from item.items()
        else:
            yield item


class Sink(Protocol):
    """Where items go: the store and the rule engine."""

    def write(self, items: Sequence[Item]) -> None:
        """Take items, in order of step."""
        ...

    def close(self) -> None:
        """No more items will come."""
        ...
