"""Runs written by hand as the probes of a batch and a model's structure would write them."""

from __future__ import annotations

from traindx.facts import Json
from traindx.findings import Finding
from traindx.records import Event, EventKind, Item, Scalar, Site
from traindx.rules.catalog import find
from traindx.rules.engine import judge


class Probing:
    """What probes have seen of the model `net`."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def number(self, quantity: str, value: float, fqn: str = "") -> Probing:
        """A quantity at a place."""
        self.items.append(Scalar(-1, quantity, float(value), Site("net", fqn)))
        return self

    def seen(self, probe: str, fqn: str = "", **detail: Json) -> Probing:
        """An observation at a place."""
        told: dict[str, Json] = {"probe": probe, **detail}
        self.items.append(Event(-1, EventKind.OBSERVED, Site("net", fqn), told))
        return self

    def findings(self, code: str, **options: float) -> tuple[Finding, ...]:
        """What a rule says of it."""
        verdict = judge(self.items, [find(code)], {code: options})
        assert not verdict.not_evaluated, verdict.not_evaluated
        return verdict.findings

    def why_not(self, code: str) -> str:
        """Why a rule says nothing."""
        (entry,) = judge(self.items, [find(code)]).not_evaluated
        return entry.reason
