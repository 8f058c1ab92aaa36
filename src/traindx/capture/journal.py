"""What capture says: events waiting for their step, and the way of all items to the sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from traindx.capture.logged import Logged
from traindx.facts import Json
from traindx.records import RUN, Event, EventKind, Item, Sink, Site

_PATIENCE = 0.1
"""Seconds between two writings at most, while there are steps."""


class Journal:
    """Writes items to the sinks, and keeps events until the next writing.

    Attributes:
        seconds: Time the sinks have taken.
        logged: What the program logs itself.
    """

    def __init__(
        self, sinks: Sequence[Sink], clock: Callable[[], float], tell: Callable[[str], None]
    ) -> None:
        self.seconds = 0.0
        self.logged = Logged(tell)
        self._sinks = sinks
        self._clock = clock
        self._events: list[Event] = []
        self._written = clock()

    def overdue(self, now: float) -> bool:
        """Whether the sinks have got nothing for a while, so that a kill would lose as much."""
        return now - self._written > _PATIENCE

    def note(self, step: int, text: str) -> None:
        """Something a reader must know."""
        self.event(step, EventKind.NOTE, {"text": text})

    def event(self, step: int, kind: EventKind, detail: dict[str, Json], site: Site = RUN) -> None:
        """Something that happened, to the run as a whole or at a place."""
        self._events.append(Event(step, kind, site, detail))

    def write(self, items: Sequence[Item], *, wait: bool = True) -> None:
        """Hand on the events and logged numbers that wait, then the items.

        Args:
            items: What has been measured.
            wait: Whether it is time to wait for numbers that are on a device.
        """
        events, self._events = self._events, []
        items = [*events, *self.logged.read(wait=wait), *items]
        if not items:
            return
        started = self._clock()
        for sink in self._sinks:
            sink.write(items)
        self._written = self._clock()
        self.seconds += self._written - started
