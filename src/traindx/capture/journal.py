"""What capture says: events waiting for their step, and the way of all items to the sinks.

Items reach the sinks in the order they are written in. Where a step's numbers are still on their
way from a device, it waits for them as a whole, and what comes after it waits, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from traindx.capture.logged import Logged
from traindx.capture.transfer import Host, Part, Portion
from traindx.facts import Json
from traindx.messages import say
from traindx.records import RUN, Event, EventKind, Item, Sink, Site

_PATIENCE = 1.0
"""Seconds between two writings at most, while there are steps."""


class Journal:
    """Writes items to the sinks, and keeps events until the next writing.

    Attributes:
        seconds: Time the sinks have taken.
        logged: What the program logs itself.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        clock: Callable[[], float],
        tell: Callable[[str], None],
        host: Host,
    ) -> None:
        self.seconds = 0.0
        self.logged = Logged(tell)
        self._sinks = sinks
        self._clock = clock
        self._host = host
        self._waiting: deque[Portion] = deque()
        self._events: list[Event] = []
        self._written = clock()

    @property
    def overdue_at(self) -> float:
        """When nothing will have been written for a while, so that a kill would lose as much."""
        return self._written + _PATIENCE

    def note(self, step: int, text: str) -> None:
        """Something a reader must know."""
        self.event(step, EventKind.NOTE, {"text": text})

    def event(self, step: int, kind: EventKind, detail: dict[str, Json], site: Site = RUN) -> None:
        """Something that happened, to the run as a whole or at a place."""
        self._events.append(Event(step, kind, site, detail))

    def gather(self, parts: Sequence[Part], *, fetch: bool = True) -> Portion:
        """The events and logged numbers that wait, then these parts, on their way to the host.

        Args:
            parts: What has been measured.
            fetch: Whether it is time to fetch logged numbers that are on a device.
        """
        events = [*self._events]
        portion = Portion([*events, *self.logged.unread(fetch=fetch), *parts], self._host)
        del self._events[: len(events)]
        return portion

    def write(
        self, parts: Portion | Sequence[Part], *, fetch: bool = True, measured: bool = False
    ) -> None:
        """Hand on what has arrived, in the order in which it was written.

        Args:
            parts: A portion, or what to gather as one.
            fetch: Whether it is time to fetch logged numbers that are on a device.
            measured: Whether it is that of a measured step, by which all before it is waited for.
        """
        portion = parts if isinstance(parts, Portion) else self.gather(parts, fetch=fetch)
        if portion:
            self._waiting.append(portion)
            self._written = self._clock()
        awaited = len(self._waiting) - 1 if measured else 0
        while self._waiting and (awaited > 0 or self._waiting[0].done()):
            items = self._waiting[0].items()
            self._waiting.popleft()  # whoever interrupts us loses a step, and has none twice
            self._hand_on(items)
            awaited -= 1

    def close(self, step: int) -> None:
        """Hand on all that waits, also where a device has failed and will never answer."""
        lost = ""
        for portion in self._waiting:
            try:
                items = portion.items()
            except Exception as error:
                items, lost = portion.items_without_numbers(), repr(error)
            self._hand_on(items)
        self._waiting.clear()
        if lost:
            self.note(step, say("numbers were lost with the device that had them: {e}", e=lost))
        try:
            self._hand_on(self.gather([]).items())
        except Exception:  # what the program logged is lost, too
            self._hand_on(self._events)

    def _hand_on(self, items: Sequence[Item]) -> None:
        if not items:
            return
        started = self._clock()
        for sink in self._sinks:
            sink.write(items)
        self._written = self._clock()
        self.seconds += self._written - started
