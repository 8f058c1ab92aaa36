"""What probes have left in a run for rules to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.facts import Json
from traindx.looks import looked as looked
from traindx.messages import Message, say
from traindx.records import EventKind, Site

if TYPE_CHECKING:
    from traindx.run import Run

STEP = -1
"""The step of what was measured before training."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a probe has seen at one place, besides numbers."""

    site: Site
    detail: dict[str, Json]

    def number(self, name: str, absent: float = 0.0) -> float:
        """One of its details as a number."""
        value = self.detail.get(name)
        return float(value) if isinstance(value, int | float) else absent

    def text(self, name: str) -> str:
        """One of its details as text, empty if there is none."""
        value = self.detail.get(name)
        return "" if value is None else str(value)

    def names(self, name: str) -> list[str]:
        """One of its details as a list of names, empty if there is none."""
        value = self.detail.get(name)
        return [str(each) for each in value] if isinstance(value, list) else []


def observations(run: Run, probe: str) -> Iterator[Observation]:
    """What a probe has seen, place by place."""
    for event in run.events(EventKind.OBSERVED):
        if event.detail.get("probe") == probe:
            yield Observation(event.site, event.detail)


def observation(run: Run, probe: str, site: Site) -> Observation | None:
    """What a probe has seen at one place, None if nothing."""
    return next((one for one in observations(run, probe) if one.site == site), None)


def why_not(run: Run, quantities: tuple[str, ...]) -> str:
    """Why the probe that measures some quantities has said nothing; empty if none was asked."""
    for probe in looked(run):
        if set(probe.writes) & set(quantities):
            reason = Message(probe.reason) if probe.reason else say("there was nothing to measure")
            return say("{probe}: {reason}", probe=probe.name, reason=reason)
    return ""
