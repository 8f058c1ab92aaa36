"""Losses that stopped being finite: whatever else was found, such a run is not well."""

from __future__ import annotations

import math
from dataclasses import dataclass

from traindx.records import Site
from traindx.report.untrusted import plain
from traindx.run import Run, Series


@dataclass(frozen=True, slots=True)
class BrokenLoss:
    """A loss that was NaN or infinite.

    Attributes:
        name: The loss in words.
        step: The first step at which it was.
        value: Its value there.
        lasting: Whether it has been so ever since.
    """

    name: str
    step: int
    value: float
    lasting: bool

    @property
    def headline(self) -> str:
        """What is wrong with it."""
        if self.lasting:
            return f"{self.name} is not finite from step {self.step} on"
        return f"{self.name} was not finite at some steps, first at step {self.step}"

    @property
    def note(self) -> str:
        """What that means for the findings."""
        value = "NaN" if math.isnan(self.value) else "infinite"
        when = f"is {value} from" if self.lasting else f"was {value} at some steps, first at"
        words = f"{self.name} {when} step {self.step}{' on' if self.lasting else ''}"
        return f"{words[0].upper()}{words[1:]}: rules that compare gradients cannot judge there."


def broken_losses(run: Run) -> list[BrokenLoss]:
    """Every loss that was not finite at some step, in the order they were first seen."""
    losses = run.series("loss")
    found = (_broken(series, alone=len(losses) == 1) for series in losses)
    return [broken for broken in found if broken]


def _broken(series: Series, *, alone: bool) -> BrokenLoss | None:
    finite = [math.isfinite(value) for _, value in series]
    if all(finite):
        return None
    first = finite.index(False)
    step, value = list(series)[first]
    return BrokenLoss(_name(series.site, alone=alone), step, value, not any(finite[first:]))


def _name(site: Site, *, alone: bool) -> str:
    return "the loss" if alone or not site.model else f"the loss of {plain(site.model)}"
