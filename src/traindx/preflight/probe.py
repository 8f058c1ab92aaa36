"""What a probe is: a decorated function that looks at a case and yields what it has measured."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from traindx.facts import Json
from traindx.messages import Message, say
from traindx.preflight.case import Case
from traindx.records import RUN, Event, EventKind, Item, Site

STEP = -1
"""What comes before training has this step."""

FEW = 4
"""Samples that are a few."""

Need = Literal["loss", "comparison", "target", "optimizer", "batch", "loaders", "widths"]
Look = Callable[[Case], Iterable[Item]]


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a probe that takes as many as it needs; one is timed before the plan is told.

    Attributes:
        ready: Makes a case ready, and gives what takes a step.
        least: How many it takes at least.
        typical: How many it takes as a rule.
        most: How many it takes at most.
    """

    ready: Callable[[Case], Callable[[], object]]
    least: int
    typical: int
    most: int


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe.

    Attributes:
        name: Kebab-case.
        look: The decorated function.
        needs: What a case must have.
        writes: The quantities that it writes.
        trains: Whether it takes steps, and so is left out where it must be quick.
        passes: What it costs, in forward and backward passes of the whole batch.
        few: What it costs besides, in such passes of a few samples.
        seconds: What it costs besides, of work that does not depend on the model.
        steps: The steps that it takes besides.
    """

    name: str
    look: Look
    needs: tuple[Need, ...] = ()
    writes: tuple[str, ...] = ()
    trains: bool = False
    passes: float | Callable[[Case], float] = 1.0
    few: float | Callable[[Case], float] = 0.0
    seconds: Callable[[Case], float] | None = None
    steps: Steps | None = None

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return (inspect.getdoc(self.look) or "").partition("\n\n")[0].replace("\n", " ")

    def cost(
        self, case: Case, whole: float = 1.0, few: float = 0.0, slowness: float = 1.0
    ) -> float:
        """Seconds that it costs on a case, without its steps.

        Args:
            case: The case.
            whole: What a pass of the whole batch costs.
            few: What a pass of a few samples costs.
            slowness: How many times as long other work takes as on the author's machine.
        """
        passes = self.passes(case) if callable(self.passes) else self.passes
        others = self.few(case) if callable(self.few) else self.few
        besides = self.seconds(case) if self.seconds is not None else 0.0
        return passes * whole + others * few + besides * slowness

    def missing(self, case: Case) -> Message:
        """What it needs and the case has not; empty if it can look."""
        for need in self.needs:
            if reason := _missing(need, case):
                return reason
        return Message("")


def _missing(need: Need, case: Case) -> Message:
    match need:
        case "loss" | "comparison":
            return Message("") if case.loss_found else case.why_no_loss or say("no loss was found")
        case "target":
            return Message("") if case.targets else say("no target was found")
        case "optimizer":
            return Message("") if case.optimizer is not None else say("no optimizer was found")
        case "batch":
            return Message("") if case.batch_size else say("the batch has no axis of samples")
        case "loaders":
            found = case.loaders.training is not None
            return Message("") if found else say("no data loader was seen")
        case "widths":
            found = case.widths is not None
            return Message("") if found else say("no function makes the model in other widths")


def probe(
    *,
    needs: tuple[Need, ...] = (),
    writes: tuple[str, ...] = (),
    trains: bool = False,
    passes: float | Callable[[Case], float] = 1.0,
    few: float | Callable[[Case], float] = 0.0,
    seconds: Callable[[Case], float] | None = None,
    steps: Steps | None = None,
) -> Callable[[Look], Probe]:
    """Make a probe of a function; its name in kebab-case is the probe's name."""

    def decorate(look: Look) -> Probe:
        name = look.__name__.replace("_", "-")
        return Probe(name, look, needs, writes, trains, passes, few, seconds, steps)

    return decorate


def observed(probe: str, site: Site = RUN, **detail: Json) -> Event:
    """What a probe has seen that is more than a number, for its rule to read."""
    told: Mapping[str, Json] = {"probe": probe, **detail}
    return Event(STEP, EventKind.OBSERVED, site, dict(told))
