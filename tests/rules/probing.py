"""What probes leave in a run, written by hand."""

from __future__ import annotations

from tests.rules.recording import Recording
from traindx.facts import Json
from traindx.findings import Finding
from traindx.records import Event, EventKind, Site


class Probed(Recording):
    """The items of one probe, before training.

    Args:
        code: The rule that judges them.
        probe: The probe's name.
        numbers: What it has measured of the model, without the beginning of their names.
    """

    def __init__(self, code: str, probe: str, **numbers: float) -> None:
        super().__init__()
        self._code, self._probe = code, probe
        for name, value in numbers.items():
            self.number(name, value)

    def number(self, name: str, value: float, fqn: str = "") -> None:
        """A number that it has measured."""
        self.scalar(-1, f"probe.{name}", value, fqn)

    def seen(self, fqn: str = "", **detail: Json) -> Probed:
        """What it has observed besides."""
        event = Event(-1, EventKind.OBSERVED, Site("net", fqn), {"probe": self._probe, **detail})
        self.items.append(event)
        return self

    def findings(self) -> list[Finding]:
        """What the rule says."""
        self.measured(-1)
        return list(self.verdict(self._code).findings)
