"""What one measured step collects, and the single copy that brings it to the host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor

from traindx.capture.models import TrackedModel
from traindx.facts import Json
from traindx.records import Event, EventKind, Item, Point, Record, Scalar, Site, TensorStats
from traindx.stats import Row, summarize, unmeasurable

Place = tuple[TrackedModel, str, Point]
"""What of which part of a model."""


class Recorder:
    """Rows and scalars of the round going on, by place.

    Attributes:
        step: The step going on; moves the start of the samples.
    """

    def __init__(self) -> None:
        self.step = 0
        self._skipped: dict[Place, str] = {}
        self._told: set[Place] = set()
        self._rows: dict[Place, list[Row]] = {}
        self._scalars: dict[tuple[TrackedModel, str, str], float | Tensor] = {}

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
        return True

    def scalar(self, model: TrackedModel, fqn: str, quantity: str, value: float | Tensor) -> None:
        """Note a number; the last one of a step counts."""
        self._scalars[model, fqn, quantity] = value

    def has(self, place: Place) -> bool:
        """Whether something was measured there in this round."""
        return place in self._rows

    def drop_outputs(self, model: TrackedModel) -> None:
        """Forget the activations of a model in this round."""
        for place in [p for p in self._rows if p[0] is model and p[2] is Point.OUTPUT]:
            del self._rows[place]

    def items(self) -> list[Item]:
        """Everything of confirmed models, and begin anew."""
        rows = [(place, row) for place, rows in self._rows.items() for row in rows]
        rows = [(place, row) for place, row in rows if place[0].confirmed]
        scalars = [(key, value) for key, value in self._scalars.items() if key[0].confirmed]
        fields = [field for _, row in rows for field in row.fields]
        values = to_host([*fields, *(value for _, value in scalars)])
        self._rows, self._scalars = {}, {}
        return [*self._records(rows, values), *self._numbers(scalars, values[len(fields) :])]

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

    def _numbers(
        self, scalars: list[tuple[tuple[TrackedModel, str, str], float | Tensor]], host: list[float]
    ) -> Iterable[Scalar]:
        for ((model, fqn, quantity), _), value in zip(scalars, host, strict=True):
            yield Scalar(self.step, quantity, value, Site(model.name, fqn))


def to_host(values: list[float | Tensor]) -> list[float]:
    """All values, numbers or zero-dimensional tensors, as floats.

    One copy, and one synchronization, per device and dtype.
    """
    host = [value if isinstance(value, float) else 0.0 for value in values]
    groups: dict[tuple[torch.device, torch.dtype], list[tuple[int, Tensor]]] = {}
    for i, value in enumerate(values):
        if isinstance(value, Tensor):
            groups.setdefault((value.device, value.dtype), []).append((i, value))
    for places in groups.values():
        numbers: list[float] = cast(Any, torch.stack([value for _, value in places])).tolist()
        for (i, _), number in zip(places, numbers, strict=True):
            host[i] = float(number)
    return host
