"""What capture says: events waiting for their step, and the way of all items to the sinks.

Items reach the sinks in the order they are written in. Where a step's numbers are still on their
way from a device, it waits for them as a whole, and what comes after it waits, too. What has
arrived may wait for more: the sinks are given several steps at one go.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

from traindx.capture.logged import Logged
from traindx.capture.transfer import Host, Part, Portion
from traindx.facts import Json
from traindx.messages import say
from traindx.records import RUN, Event, EventKind, Item, Sink, Site

_PATIENCE = 1.0
"""Seconds between two writings at most, while there are steps."""
_TOGETHER = 8
"""Steps whose items are made at one go: what waits for that are some sixty objects a step, and
the more there are, the more often Python's garbage collector goes through all of the program's."""


class Journal:
    """Writes items to the sinks, and keeps events until the next writing.

    Between two steps of a training nothing of the sinks is in the processor's caches, and making
    the items of one step, storing and judging them costs about twice of what it does among others.

    Args:
        sinks: What items are written to.
        clock: Seconds.
        tell: Told what the user must know.
        host: Where numbers on a device are brought to.
        patience: Seconds from one time that the sinks are given items to the next, at least.

    Attributes:
        seconds: Time that the sinks have taken, and the making of what they are given.
        logged: What the program logs itself.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        clock: Callable[[], float],
        tell: Callable[[str], None],
        host: Host,
        *,
        patience: float = 0.0,
    ) -> None:
        self.seconds = 0.0
        self.logged = Logged(tell)
        self._sinks = [(sink, deque[list[Item]]()) for sink in sinks]
        self._clock = clock
        self._host = host
        self._patience = patience
        self._under_way: deque[Portion] = deque()
        self._arrived: deque[Portion] = deque()
        self._events: list[Event] = []
        self._made = 0
        self._written = self._handed_on = clock()
        self._lock = threading.RLock()  # somebody may ask from another thread

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
    ) -> int:
        """Take parts, and hand on what has arrived if the last time was long enough ago.

        Returns how many portions were handed on, or made ready for that.

        Args:
            parts: A portion, or what to gather as one.
            fetch: Whether it is time to fetch logged numbers that are on a device.
            measured: Whether it is that of a measured step, by which all before it is waited for.
        """
        portion = parts if isinstance(parts, Portion) else self.gather(parts, fetch=fetch)
        now = self._clock()
        if portion:
            self._under_way.append(portion)
            self._written = now
        awaited = len(self._under_way) - 1 if measured else 0
        while self._under_way and (awaited > 0 or self._under_way[0].done()):
            self._under_way[0].read()
            self._arrived.append(self._under_way.popleft())
            awaited -= 1
        if now - self._handed_on >= self._patience:
            return self.hand_on()
        if len(self._arrived) < _TOGETHER:
            return 0
        began = self._clock()
        self._make()
        self.seconds += self._clock() - began
        return _TOGETHER

    def hand_on(self) -> int:
        """Give the sinks what has arrived, in the order in which it was written; how much it was.

        Whoever interrupts this loses a step, and has none twice.
        """
        began = self._handed_on = self._clock()
        with self._lock:
            self._make()
            count, self._made = self._made, 0
            self._give()
        self._written = self._clock()
        self.seconds += self._written - began
        return count

    def _make(self) -> None:
        """Make the items of all that has arrived."""
        with self._lock:
            while self._arrived:
                items = self._arrived[0].items()
                self._arrived.popleft()
                self._add(items)
                self._made += 1

    def close(self, step: int) -> None:
        """Hand on all that waits, also where numbers cannot be read, as on a failed device."""
        lost = ""
        with self._lock:
            for portion in [*self._arrived, *self._under_way]:
                try:
                    items = portion.items()
                except Exception as error:
                    items, lost = portion.items_without_numbers(), repr(error)
                self._add(items)
            self._arrived.clear()
            self._under_way.clear()
            if lost:
                self.note(step, say("the last numbers could not be read and are lost: {e}", e=lost))
            try:
                self._add(self.gather([]).items())
            except Exception:  # what the program logged is lost, too
                self._add([*self._events])
            self._give()

    def _add(self, items: list[Item]) -> None:
        """These items come next."""
        for _, waiting in self._sinks if items else ():
            waiting.append(items)

    def _give(self) -> None:
        for sink, waiting in self._sinks:
            while waiting:
                sink.write(waiting.popleft())
