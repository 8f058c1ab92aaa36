"""What one measured step collects, by place, until it is brought to the host as one."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, NamedTuple, TypeVar, cast

from torch import Tensor

from traindx.capture.models import TrackedModel
from traindx.capture.transfer import Lists, Numbers, Part, Unread
from traindx.facts import Json
from traindx.records import Bundle, Event, EventKind, Item, Point, Site, Vector
from traindx.stats import Row, exponents, summarize, summarize_all, unmeasurable
from traindx.stats.rows import Statistics

Place = tuple[TrackedModel, str, Point]
"""What of which part of a model."""
_Named = tuple[TrackedModel, str, str]
T = TypeVar("T")
_GRAD, _APPLIED = Point.GRAD, Point.APPLIED_GRAD
_Seen = tuple[weakref.ref[Tensor] | None, int, Row | None]
"""A gradient, its version, and what was read of it."""
_UNSEEN: _Seen = None, 0, None
_KINDS = 8
"""Of how many kinds of rounds it is remembered what they measured: some things have turns."""
_WITH_EXPONENTS = (Point.OUTPUT, Point.GRAD)


class _Far(NamedTuple):
    """A row on a device, and the loss scale it is yet to be divided by."""

    row: Row
    scale: Tensor | None


class _Awaited(NamedTuple):
    """The same without its tensors; of the scale its place among all scales."""

    row: Row
    scale: int | None

    def numbers(self, fields: Numbers, scales: Numbers) -> Statistics:
        """The statistics, once the fields have arrived."""
        total, m2, low, high, nonzero = fields
        if self.scale is not None:
            by = scales[self.scale]
            total, m2, low, high = total / by, m2 / by / by, low / by, high / by
        row = self.row._replace(total=total, m2=m2, min=low, max=high, nonzero=nonzero)
        return row.numbers()


class _Shared(Generic[T]):
    """What was measured where, in the same tuple for all rounds that measured alike."""

    def __init__(self) -> None:
        self._known: list[tuple[list[tuple[TrackedModel, str, T]], tuple[tuple[T, Site], ...]]] = []

    def of(self, keys: list[tuple[TrackedModel, str, T]]) -> tuple[tuple[T, Site], ...]:
        """What these places are to readers."""
        for known, named in self._known:
            if known == keys:
                return named
        named = tuple((what, Site(model.name, fqn)) for model, fqn, what in keys)
        self._known = [(keys, named), *self._known[: _KINDS - 1]]
        return named


class Recorder:
    """Rows, scalars and vectors of the round going on, by place.

    Attributes:
        step: The step going on; moves the start of the samples.
        round: How many rounds were measured before the one going on.
        wants_vectors: Whether vectors are wanted in it.
    """

    def __init__(self) -> None:
        self.step = 0
        self.round = 0
        self.wants_vectors = True
        self._skipped: dict[Place, str] = {}
        self._told: set[Place] = set()
        self._rows: dict[Place, list[Row | _Far]] = {}
        self._scalars: dict[_Named, float | Tensor] = {}
        self._vectors: dict[_Named, Tensor] = {}
        self._known: dict[Hashable, Row] = {}
        self._gradients: dict[int, _Seen] = {}
        self._last: tuple[Place, int] | None = None
        self._step_before = 0
        self._places: _Shared[Point] = _Shared()
        self._names: _Shared[str] = _Shared()

    def measurable(self, place: Place, tensor: Tensor) -> bool:
        """Whether a tensor can be measured; if not, `skips` will tell why."""
        reason = unmeasurable(tensor)
        if reason:
            self._skipped[place] = reason
        return not reason

    def skip(self, place: Place, reason: str) -> None:
        """Note that something cannot be measured, and why: `skips` will tell."""
        self._skipped[place] = reason

    def tensor(
        self,
        place: Place,
        tensor: Tensor,
        *,
        zeros: bool = False,
        scale: float | Tensor | None = None,
        same: Hashable = None,
    ) -> bool:
        """Summarize a tensor now; further ones at the same place in a round merge.

        False if it cannot be measured, which `skips` will tell.

        Args:
            place: Where it was met.
            tensor: What was met.
            zeros: Whether to count zeros.
            scale: What it is to be divided by.
            same: What no other numbers have in this round: where it comes again, the tensor is not
                read again.
        """
        if reason := unmeasurable(tensor):
            self._skipped[place] = reason
            return False
        self._last = place, id(tensor)
        row = None if same is None else self._known.get(same)
        if row is None:
            row = summarize(tensor, sample_at=self.step if zeros else None, start=self.step)
            if same is not None:
                self._known[same] = row
        self._keep(place, tensor, row, scale)
        return True

    def gradient(self, place: Place, gradient: Tensor, scale: float | Tensor | None) -> None:
        """Summarize the gradient of an output: an addition passes one on to all that it adds."""
        if reason := unmeasurable(gradient):
            self._skipped[place] = reason
            return
        key, version = id(gradient), gradient._version
        seen, before, row = self._gradients.get(key, _UNSEEN)
        if row is None or seen is None or seen() is not gradient or version != before:
            row = summarize(gradient, start=self.step)
            self._gradients[key] = weakref.ref(gradient), version, row
        self._last = place, key
        self._keep(place, gradient, row, scale)

    def let_go(self) -> None:
        """Refer to no tensor, not even weakly."""
        self._known, self._gradients = {}, {}

    def tensors(
        self, found: Sequence[tuple[Place, Tensor]], *, scale: float | Tensor | None = None
    ) -> None:
        """Summarize several now, each in place of what was measured there before."""
        if not found:
            return
        measurable: list[tuple[Place, Tensor]] = []
        for place, tensor in found:
            if reason := unmeasurable(tensor):
                self._skipped[place] = reason
            else:
                measurable.append((place, tensor))
        rows = summarize_all([tensor for _, tensor in measurable], start=self.step)
        for (place, tensor), row in zip(measurable, rows, strict=True):
            self._keep(place, tensor, row, scale, replace=True)

    def _keep(
        self,
        place: Place,
        tensor: Tensor,
        row: Row,
        scale: float | Tensor | None,
        *,
        replace: bool = False,
    ) -> None:
        kept = row if scale is None and type(row.total) is float else _kept(row, scale)
        if replace or place not in self._rows:
            self._rows[place] = [kept]
        else:
            self._rows[place].append(kept)
        if self.wants_vectors and place[2] in _WITH_EXPONENTS:
            self.exponents(place, tensor, scale=scale, replace=replace)

    def exponents(
        self,
        place: Place,
        tensor: Tensor,
        *,
        scale: float | Tensor | None = None,
        replace: bool = False,
    ) -> None:
        """Count a measurable tensor's binary exponents, if vectors are wanted in this round."""
        if not self.wants_vectors:
            return
        model, fqn, point = place
        if isinstance(scale, Tensor):  # of a model in parts, another part's device may hold it
            scale = scale.to(tensor.device, non_blocking=True)
        counts = exponents(tensor, self.step, scale)
        before = self._vectors.get(key := (model, fqn, f"{point}.exponents"))
        self._vectors[key] = counts if before is None or replace else before + counts

    def scalar(self, model: TrackedModel, fqn: str, quantity: str, value: float | Tensor) -> None:
        """Note a number; the last one of a step counts."""
        self._scalars[model, fqn, quantity] = value

    def vector(self, model: TrackedModel, fqn: str, quantity: str, values: Tensor) -> None:
        """Note several numbers, (n,); the last ones of a step count."""
        self._vectors[model, fqn, quantity] = values

    def due(self, *, dense: int, every: int, apart: int) -> bool:
        """Whether this round has the turn of something that costs much.

        Args:
            dense: Rounds at the start that all have it.
            every: One of so many has it later.
            apart: Steps that there are between two of them then, where rounds are regular.
        """
        between = max(1, self.step - self._step_before)
        return self.round < dense or self.round % max(every, -(-apart // between)) == 0

    def has(self, place: Place) -> bool:
        """Whether something was measured there in this round."""
        return place in self._rows

    def measured(self, place: Place, tensor: Tensor) -> bool:
        """Whether something was measured there in this round, and this tensor can be, too."""
        if place not in self._rows:
            return False
        return self._last == (place, id(tensor)) or not unmeasurable(tensor)

    def drop_outputs(self, model: TrackedModel) -> None:
        """Forget the inputs and activations of a model in this round."""
        points = (Point.INPUT, Point.OUTPUT)
        for place in [p for p in self._rows if p[0] is model and p[2] in points]:
            del self._rows[place]
        for noted in (self._scalars, self._vectors):
            for key in [k for k in noted if k[0] is model and k[2].startswith("output.")]:
                del noted[key]

    def parts(self) -> list[Part]:
        """Everything of confirmed models, to be written, and begin anew."""
        rows = [
            (place, kept)
            for place, several in self._rows.items()
            if place[0].confirmed
            for kept in several
        ]
        scalars = [(key, value) for key, value in self._scalars.items() if key[0].confirmed]
        vectors = [(key, value) for key, value in self._vectors.items() if key[0].confirmed]
        self._rows, self._scalars, self._vectors = {}, {}, {}
        self.let_go()
        self.round += 1
        self.wants_vectors = _has_vectors(self.round)
        self._step_before = self.step
        near = _all_near(rows)
        if near is None or vectors or any(type(value) is not float for _, value in scalars):
            return [self._unread(rows, scalars, vectors)]
        # On the host there is nothing to wait for, which would cost as much again.
        numbers = cast("list[float]", [value for _, value in scalars])
        return [*self._bundled(self.step, _statistics(near), [key for key, _ in scalars], numbers)]

    def _unread(
        self,
        rows: list[tuple[Place, Row | _Far]],
        scalars: list[tuple[_Named, float | Tensor]],
        vectors: list[tuple[_Named, Tensor]],
    ) -> Unread:
        far = [kept for _, kept in rows if isinstance(kept, _Far)]
        scales = {id(kept.scale): kept.scale for kept in far if kept.scale is not None}
        at = {key: i for i, key in enumerate(scales)}
        known = [(place, _awaited(kept, at)) for place, kept in rows]
        fields = [field for kept in far for field in kept.row.fields]
        values = [*scales.values(), *fields, *[value for _, value in scalars]]
        named, listed, step = [key for key, _ in scalars], [key for key, _ in vectors], self.step

        def items(numbers: Numbers, lists: Lists) -> Iterator[Item]:
            first, last = len(at), len(numbers) - len(named)
            statistics = _arrived(known, numbers[first:last], numbers[:first])
            yield from self._bundled(step, statistics, named, numbers[last:])
            yield from _vectors(step, listed, lists)

        return Unread(values, [value for _, value in vectors], items)

    def _bundled(
        self,
        step: int,
        statistics: list[tuple[Place, Statistics]],
        named: list[_Named],
        numbers: Numbers,
    ) -> Iterator[Bundle]:
        records = _told(statistics)
        if not (records or named):
            return
        places = self._places.of([place for place, _ in records])
        names = self._names.of(named)
        counts: list[int] = []
        moments: list[float] = []
        for _, (count, mean, m2, low, high, nonfinite, sampled, zeros) in records:
            counts += (count, nonfinite, sampled, zeros)
            moments += (mean, m2, low, high)
        arrays = array("q", counts), array("d", moments)
        yield Bundle(step, places, *arrays, names, array("d", numbers))

    def skips(self) -> list[Event]:
        """What could not be measured and has not been told yet."""
        events: list[Event] = []
        for place, reason in self._skipped.items():
            model, fqn, point = place
            if model.confirmed and place not in self._told:
                self._told.add(place)
                detail: dict[str, Json] = {"point": point.value, "reason": reason}
                site = Site(model.name, fqn)
                events.append(Event(self.step, EventKind.SKIPPED, site, detail))
        self._skipped = {}
        return events


def _has_vectors(number: int) -> bool:
    """Whether a round has vectors: the first four have, then about two a doubling."""
    lowest = number & -number
    # 4, 6, 8, 12, 16, 24, ...: in binary a one, perhaps a second one behind it, then zeros.
    return number < 4 or number - lowest in (0, 2 * lowest)


def _kept(row: Row, scale: float | Tensor | None) -> Row | _Far:
    """A row as it is, without the scale, if it is on the host."""
    if isinstance(row.total, Tensor) or isinstance(scale, Tensor):
        # A scale is brought over as well, rather than divided by on the device, field by field.
        late = isinstance(scale, Tensor)
        return _Far(row if late or scale is None else row.divided(scale), scale if late else None)
    return row if scale is None else row.divided(scale)


def _awaited(kept: Row | _Far, at: dict[int, int]) -> Row | _Awaited:
    if not isinstance(kept, _Far):
        return kept
    row = kept.row._replace(total=0.0, m2=0.0, min=0.0, max=0.0, nonzero=0.0)
    return _Awaited(row, None if kept.scale is None else at[id(kept.scale)])


def _all_near(rows: list[tuple[Place, Row | _Far]]) -> list[tuple[Place, Row]] | None:
    """The rows if all are on the host."""
    near = all(type(kept) is Row for _, kept in rows)
    return cast("list[tuple[Place, Row]]", rows) if near else None


def _statistics(rows: list[tuple[Place, Row]]) -> list[tuple[Place, Statistics]]:
    return [(place, row.numbers()) for place, row in rows]


def _arrived(
    known: Sequence[tuple[Place, Row | _Awaited]], fields: Numbers, scales: Numbers
) -> list[tuple[Place, Statistics]]:
    """The statistics, once what was on a device has arrived."""
    arrived = iter(fields)
    return [
        (place, kept.numbers())
        if isinstance(kept, Row)
        else (place, kept.numbers([*islice(arrived, 5)], scales))
        for place, kept in known
    ]


def _told(statistics: list[tuple[Place, Statistics]]) -> list[tuple[Place, Statistics]]:
    """Those worth telling.

    Clipping multiplies every gradient, most often by 1: only what changed is told.
    """
    if not any(place[2] is _APPLIED for place, _ in statistics):
        return statistics
    grads = {place[:2]: stats for place, stats in statistics if place[2] is _GRAD}
    return [
        (place, stats)
        for place, stats in statistics
        if place[2] is not _APPLIED or grads.get(place[:2]) != stats
    ]


def _vectors(step: int, keys: list[_Named], lists: Lists) -> Iterable[Vector]:
    for (model, fqn, quantity), values in zip(keys, lists, strict=True):
        yield Vector(step, quantity, Site(model.name, fqn), values)
