"""What happened in a run, by kind; of very many events of a kind some are kept."""

from __future__ import annotations

from collections.abc import Sequence

from traindx.records import Event, EventKind
from traindx.thinning import HEAD, TAIL, Pins, StepSet, kept

MOST = 2048
"""Events of one kind at which they are thinned."""
SPANS = 256


class Events:
    """The events of a run.

    Attributes:
        skipped: The steps that a GradScaler skipped, all of them.
    """

    def __init__(self, pins: Pins) -> None:
        self.skipped = StepSet()
        self._pins = pins
        self._kept: dict[EventKind, list[Event]] = {}
        self._counts: dict[EventKind, int] = {}

    def add(self, event: Event) -> None:
        """Add an event; steps do not go back."""
        kind = event.kind
        found = self._kept.setdefault(kind, [])
        found.append(event)
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if kind is EventKind.AMP_SKIPPED:
            self.skipped.add(event.step)
        # Sorting by place again and again must not cost more than what is added meanwhile.
        if len(found) >= MOST and self._counts[kind] % (MOST // 4) == 0:
            self._kept[kind] = _thinned(found, self._pins)

    def of(self, kind: EventKind) -> Sequence[Event]:
        """Those of one kind, in order."""
        return self._kept.get(kind, ())

    def count(self, kind: EventKind) -> int:
        """How many there were of one kind."""
        return self._counts.get(kind, 0)

    def last_steps(self, kind: EventKind, most: int) -> list[int]:
        """The steps of the last of one kind."""
        return [event.step for event in self._kept.get(kind, ())[-most:]]


def _thinned(events: Sequence[Event], pins: Pins) -> list[Event]:
    """Those of each place, and of evaluations of each mode, thinned by themselves."""
    import numpy as np

    groups: dict[object, list[int]] = {}
    for i, event in enumerate(events):
        groups.setdefault((event.site, repr(event.detail.get("training"))), []).append(i)
    left: list[int] = []
    for places in groups.values():
        if len(places) > HEAD + TAIL:
            steps = np.array([events[i].step for i in places], np.int64)
            spans = max(2, SPANS // len(groups))
            left += [places[int(i)] for i in kept(steps, spans, pins, [], [])]
        else:
            left += places
    return [events[i] for i in sorted(left)]
