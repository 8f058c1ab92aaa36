"""What one measured step collects, by place, until it is brought to the host as one."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar, cast

from torch import Tensor

from traindx.capture.models import TrackedModel
from traindx.capture.shared import Shared
from traindx.capture.transfer import Lists, Numbers, Part, Unread
from traindx.facts import Json
from traindx.records import Bundle, Event, EventKind, Item, Point, Site, Vector
from traindx.stats import Row, exponents, summarize, summarize_all, unmeasurable
from traindx.stats.rows import Statistics

Place = tuple[TrackedModel, str, Point]
"""What of which part of a model."""
_Named = tuple[TrackedModel, str, str]
_Name = tuple[str, str]
_Later = tuple[TrackedModel, Sequence[_Name], Callable[[], Sequence[float]]]
T = TypeVar("T")
_Key = TypeVar("_Key", bound=tuple[TrackedModel, str, str])
_GRAD, _APPLIED = Point.GRAD, Point.APPLIED_GRAD
_Seen = tuple[weakref.ref[Tensor] | None, int, Row | None]
"""A gradient, its version, and what was read of it."""
_UNSEEN: _Seen = None, 0, None
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


_Kept = Row | _Far
_Known = Mapping[Place, Row | _Awaited | list[Row | _Awaited]]
"""What was read where, without tensors."""


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
        self._rows: dict[Place, _Kept | list[_Kept]] = {}  # several only of micro-batches
        self._any_far = False
        self._scalars: dict[_Named, float | Tensor] = {}
        self._later: list[_Later] = []
        self._vectors: dict[_Named, Tensor] = {}
        self._known: dict[Hashable, Row] = {}
        self._gradients: dict[int, _Seen] = {}
        self._last: tuple[Place, int] | None = None
        self._step_before = 0
        self._places: Shared[Point] = Shared()
        self._names: Shared[str] = Shared()

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
        plain = scale is None and not self.wants_vectors
        for (place, tensor), row in zip(measurable, rows, strict=True):
            if plain and type(row.total) is float:
                self._rows[place] = row
                continue
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
        if scale is None and type(row.total) is float:
            kept = row
        else:
            kept = _kept(row, scale)
            self._any_far |= type(kept) is _Far
        before = None if replace else self._rows.get(place)
        if isinstance(before, list):
            before.append(kept)
        else:
            self._rows[place] = kept if before is None else [before, kept]
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

    def scalars(self, noted: Iterable[tuple[_Named, float | Tensor]]) -> None:
        """The same of several, by model, part and quantity."""
        self._scalars.update(noted)

    def later(
        self, model: TrackedModel, names: Sequence[_Name], numbers: Callable[[], Sequence[float]]
    ) -> None:
        """Note numbers that are made as they are written: of parts and quantities, in order."""
        self._later.append((model, names, numbers))

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
        rows, scalars = _of_confirmed(self._rows), _of_confirmed(self._scalars)
        unread = self._unread(rows, scalars, _of_confirmed(self._vectors), far=self._any_far)
        self._rows, self._scalars, self._vectors, self._any_far = {}, {}, {}, False
        self._later = []
        self.let_go()
        self.round += 1
        self.wants_vectors = _has_vectors(self.round)
        self._step_before = self.step
        return [unread]

    def _unread(
        self,
        rows: Mapping[Place, _Kept | list[_Kept]],
        scalars: dict[_Named, float | Tensor],
        vectors: dict[_Named, Tensor],
        *,
        far: bool,
    ) -> Unread:
        fields, scales, known = _parted(rows) if far else ([], {}, cast("_Known", rows))
        named, listed, step = [*scalars], [*vectors], self.step
        first = len(scales)
        last = first + len(fields)
        later = [one for one in self._later if one[0].confirmed]

        def items(numbers: Numbers, lists: Lists) -> Iterator[Item]:
            statistics = _arrived(known, numbers[first:last], numbers[:first])
            late = [(model, *name) for model, names, _ in later for name in names]
            made = [number for _, _, make in later for number in make()]
            yield from self._bundled(step, statistics, named + late, [*numbers[last:], *made])
            yield from _vectors(step, listed, lists)

        values = [*scales.values(), *fields, *scalars.values()]
        return Unread(values, [*vectors.values()], items)

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


def _of_confirmed(noted: dict[_Key, T]) -> dict[_Key, T]:
    """What was noted of models known to be trained: as a rule all of it."""
    if all([model.confirmed for model in {key[0] for key in noted}]):
        return noted
    return {key: value for key, value in noted.items() if key[0].confirmed}


def _has_vectors(number: int) -> bool:
    """Whether a round has vectors: the first four have, then about two a doubling."""
    lowest = number & -number
    # 4, 6, 8, 12, 16, 24, ...: in binary a one, perhaps a second one behind it, then zeros.
    return number < 4 or number - lowest in (0, 2 * lowest)


def _kept(row: Row, scale: float | Tensor | None) -> _Kept:
    """A row as it is, without the scale, if it is on the host."""
    if isinstance(row.total, Tensor) or isinstance(scale, Tensor):
        # A scale is brought over as well, rather than divided by on the device, field by field.
        late = isinstance(scale, Tensor)
        return _Far(row if late or scale is None else row.divided(scale), scale if late else None)
    return row if scale is None else row.divided(scale)


def _parted(
    rows: Mapping[Place, _Kept | list[_Kept]],
) -> tuple[list[float | Tensor], dict[int, Tensor], _Known]:
    """What of rows is on a device: their fields and scales by id; and the rows without those."""
    each = {place: some if isinstance(some, list) else [some] for place, some in rows.items()}
    far = [kept for several in each.values() for kept in several if isinstance(kept, _Far)]
    scales = {id(kept.scale): kept.scale for kept in far if kept.scale is not None}
    at = {key: i for i, key in enumerate(scales)}
    known: _Known = {place: [_awaited(kept, at) for kept in some] for place, some in each.items()}
    return [field for kept in far for field in kept.row.fields], scales, known


def _awaited(kept: Row | _Far, at: dict[int, int]) -> Row | _Awaited:
    if not isinstance(kept, _Far):
        return kept
    row = kept.row._replace(total=0.0, m2=0.0, min=0.0, max=0.0, nonzero=0.0)
    return _Awaited(row, None if kept.scale is None else at[id(kept.scale)])


def _arrived(known: _Known, fields: Numbers, scales: Numbers) -> list[tuple[Place, Statistics]]:
    """The statistics, once what was on a device has arrived."""
    arrived = iter(fields)
    return [
        (place, kept.numbers())
        if isinstance(kept, Row)
        else (place, kept.numbers([*islice(arrived, 5)], scales))
        for place, some in known.items()
        for kept in (some if isinstance(some, list) else (some,))
    ]


def _told(statistics: list[tuple[Place, Statistics]]) -> list[tuple[Place, Statistics]]:
    """Those worth telling.

    Clipping multiplies every gradient, most often by 1: only what changed is told.
    """
    if not [place for place, _ in statistics if place[2] is _APPLIED]:
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
