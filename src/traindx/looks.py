"""What is told of each probe of a preflight: that it has looked, or why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.facts import Json
from traindx.records import EventKind

if TYPE_CHECKING:
    from traindx.run import Run


@dataclass(frozen=True, slots=True)
class Looked:
    """A probe that has looked, or has not.

    Attributes:
        name: Its name.
        writes: Quantities that it may write.
        seconds: What it took; None if it did not look.
        estimate: What it was expected to take; None if it did not look.
        least: What it was expected to take at least; None if it did not look.
        most: What it was expected to take at most; None if it did not look.
        reason: Why it says nothing; empty if it has looked.
        failed: Whether it says nothing because of an error.
        trace: What it changed and could not be put back; empty if all is as before.
    """

    name: str
    writes: tuple[str, ...]
    seconds: float | None
    estimate: float | None
    least: float | None
    most: float | None
    reason: str
    failed: bool
    trace: str


def looked(run: Run) -> list[Looked]:
    """Every probe of a preflight, in the order they looked; none of a training."""
    return [_looked(event.detail) for event in run.events(EventKind.PROBE)]


def _looked(detail: dict[str, Json]) -> Looked:
    writes = detail.get("writes")
    return Looked(
        str(detail.get("name", "")),
        tuple(map(str, writes)) if isinstance(writes, list) else (),
        _number(detail.get("seconds")),
        _number(detail.get("estimate")),
        _number(detail.get("least")),
        _number(detail.get("most")),
        str(detail.get("reason") or ""),
        bool(detail.get("failed")),
        str(detail.get("trace") or ""),
    )


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) else None
