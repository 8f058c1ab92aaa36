"""What one measured step collects, and the single copy that brings it to the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, cast

import torch
from torch import Tensor

from traindx.capture.models import TrackedModel
from traindx.facts import Json
from traindx.records import (
    Event,
    EventKind,
    Item,
    Point,
    Record,
    Scalar,
    Site,
    TensorStats,
    Vector,
)
from traindx.stats import Row, exponents, summarize, unmeasurable

Place = tuple[TrackedModel, str, Point]
"""What of which part of a model."""
_Named = tuple[TrackedModel, str, str]
_WITH_EXPONENTS = (Point.OUTPUT, Point.GRAD)


class Recorder:
    """Rows, scalars and vectors of the round going on, by place.

    Attributes:
        step: The step going on; moves the start of the samples.
        round: How many rounds were measured before the one going on.
    """

    def __init__(self) -> None:
        self.step = 0
        self.round = 0
        self._skipped: dict[Place, str] = {}
        self._told: set[Place] = set()
        self._rows: dict[Place, list[Row]] = {}
        self._scalars: dict[_Named, float | Tensor] = {}
        self._vectors: dict[_Named, Tensor] = {}

    def measurable(self, place: Place, tensor: Tensor) -> bool:
        """Whether a tensor can be measured; if not, `skips` will tell why."""
        reason = unmeasurable(tensor)
        if reason:
            self._skipped[place] = reason
        return not reason

    def tensor(
        self,
        place: Place,
        tensor: Tensor,
        *,
        zeros: bool = False,
        scale: float | Tensor | None = None,
        replace: bool = False,
    ) -> bool:
        """Summarize a tensor now; further ones at the same place merge unless `replace`.

        False if it cannot be measured, which `skips` will tell.
        """
        if not self.measurable(place, tensor):
            return False
        row = summarize(tensor, sample_at=self.step if zeros else None)
        row = row if scale is None else row.divided(scale)
        if replace:
            self._rows[place] = [row]
        else:
            self._rows.setdefault(place, []).append(row)
        if place[2] in _WITH_EXPONENTS:
            self.exponents(place, tensor, scale=scale, replace=replace)
        return True

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
        counts = exponents(tensor, self.step, scale)
        before = self._vectors.get(key := (model, fqn, f"{point}.exponents"))
        self._vectors[key] = counts if before is None or replace else before + counts

    def scalar(self, model: TrackedModel, fqn: str, quantity: str, value: float | Tensor) -> None:
        """Note a number; the last one of a step counts."""
        self._scalars[model, fqn, quantity] = value

    def vector(self, model: TrackedModel, fqn: str, quantity: str, values: Tensor) -> None:
        """Note several numbers, (n,); the last ones of a step count."""
        self._vectors[model, fqn, quantity] = values

    @property
    def wants_vectors(self) -> bool:
        """Whether vectors are wanted in this round: the first four, then about two a doubling."""
        lowest = self.round & -self.round
        # 4, 6, 8, 12, 16, 24, ...: in binary a one, perhaps a second one behind it, then zeros.
        return self.round < 4 or self.round - lowest in (0, 2 * lowest)

    def has(self, place: Place) -> bool:
        """Whether something was measured there in this round."""
        return place in self._rows

    def measured(self, place: Place, tensor: Tensor) -> bool:
        """Whether something was measured there in this round, and this tensor can be, too."""
        return place in self._rows and not unmeasurable(tensor)

    def drop_outputs(self, model: TrackedModel) -> None:
        """Forget the inputs and activations of a model in this round."""
        points = (Point.INPUT, Point.OUTPUT)
        for place in [p for p in self._rows if p[0] is model and p[2] in points]:
            del self._rows[place]
        for noted in (self._scalars, self._vectors):
            for key in [k for k in noted if k[0] is model and k[2].startswith("output.")]:
                del noted[key]

    def items(self) -> list[Item]:
        """Everything of confirmed models, and begin anew."""
        rows = [(place, row) for place, rows in self._rows.items() for row in rows]
        rows = [(place, row) for place, row in rows if place[0].confirmed]
        scalars = [(key, value) for key, value in self._scalars.items() if key[0].confirmed]
        vectors = [(key, value) for key, value in self._vectors.items() if key[0].confirmed]
        fields = [field for _, row in rows for field in row.fields]
        numbers = [*fields, *(value for _, value in scalars)]
        values, lists = lists_to_host(numbers, [value for _, value in vectors])
        self._rows, self._scalars, self._vectors = {}, {}, {}
        self.round += 1
        return [
            *self._records(rows, values),
            *self._numbers([key for key, _ in scalars], values[len(fields) :]),
            *self._lists([key for key, _ in vectors], lists),
        ]

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

    def _records(self, rows: list[tuple[Place, Row]], values: list[float]) -> Iterable[Record]:
        grads: dict[tuple[TrackedModel, str], TensorStats] = {}
        for i, ((model, fqn, point), row) in enumerate(rows):
            a, b, c, d, e = values[5 * i : 5 * i + 5]
            stats = row.stats((a, b, c, d, e))
            if point is Point.GRAD:
                grads[model, fqn] = stats
            # Clipping multiplies every gradient, most often by 1: only what changed is told.
            if point is not Point.APPLIED_GRAD or grads.get((model, fqn)) != stats:
                yield Record(self.step, Site(model.name, fqn), point, stats)

    def _numbers(self, keys: list[_Named], host: list[float]) -> Iterable[Scalar]:
        for (model, fqn, quantity), value in zip(keys, host, strict=True):
            yield Scalar(self.step, quantity, value, Site(model.name, fqn))

    def _lists(self, keys: list[_Named], host: list[tuple[float, ...]]) -> Iterable[Vector]:
        for (model, fqn, quantity), values in zip(keys, host, strict=True):
            yield Vector(self.step, quantity, Site(model.name, fqn), values)


def to_host(values: list[float | Tensor]) -> list[float]:
    """All values, numbers or zero-dimensional tensors, as floats.

    One copy, and one synchronization, per device and dtype.
    """
    return lists_to_host(values, [])[0]


def lists_to_host(
    values: list[float | Tensor], lists: list[Tensor]
) -> tuple[list[float], list[tuple[float, ...]]]:
    """The same for some one-dimensional tensors, too, in the same copy."""
    host = [value if isinstance(value, float) else 0.0 for value in values]
    host_lists: list[tuple[float, ...]] = [()] * len(lists)
    groups: dict[tuple[torch.device, torch.dtype], tuple[list[int], list[int]]] = {}
    for kind, tensors in enumerate((values, lists)):
        for i, value in enumerate(tensors):
            if isinstance(value, Tensor):
                group = groups.setdefault((value.device, value.dtype), ([], []))
                group[kind].append(i)
    for singles, several in groups.values():
        numbers = _joined([cast(Tensor, values[i]) for i in singles], [lists[i] for i in several])
        for i in singles:
            host[i] = next(numbers)
        for i in several:
            host_lists[i] = tuple(islice(numbers, lists[i].numel()))
    return host, host_lists


def _joined(singles: list[Tensor], several: list[Tensor]) -> Iterator[float]:
    """The numbers of tensors of one device and dtype, one after another."""
    parts = [*([torch.stack(singles)] if singles else []), *several]
    numbers: list[float] = cast(Any, torch.cat(parts) if len(parts) > 1 else parts[0]).tolist()
    return map(float, numbers)
