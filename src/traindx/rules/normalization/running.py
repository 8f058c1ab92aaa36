"""Running statistics as the rules see them: which layers keep them, and how far off they are."""

from __future__ import annotations

import math
from statistics import median

from traindx.facts import ModelFacts, ModuleFacts
from traindx.records import EventKind, Site
from traindx.rules.order import network_order
from traindx.run import Run, Series

RECENT = 3
"""Measured steps that show a gap as it is now: few, since it closes while statistics settle."""


def running_norms(model: ModelFacts) -> list[ModuleFacts]:
    """The normalization layers that keep running statistics, in network order."""
    place = network_order(model)
    norms = [module for module in model.modules if module.options.get("track_running_stats")]
    return sorted(norms, key=lambda norm: place[norm.fqn])


def no_running_norm(run: Run) -> str:
    """Why rules on running statistics do not apply: there are none."""
    if any(running_norms(model) for model in run.models.values()):
        return ""
    names = ", ".join(run.models)
    return f"no normalization layer with running statistics in {names or 'any model seen'}"


def never_evaluated(run: Run) -> str:
    """Why rules on evaluation do not apply: no running statistics, or never used so far."""
    passes = run.events(EventKind.EVALUATION)
    used = any(event.step > 0 and not event.detail.get("training") for event in passes)
    missing = "no evaluation pass in eval mode after training began"
    return no_running_norm(run) or ("" if used else missing)


def used_at(run: Run, series: Series) -> int | None:
    """The step before which the statistics of a layer count, None if they were never used.

    That is the last evaluation pass of its model in eval mode after its first training step, or
    the end of its training if that came later and the run has ended: what it ends with is what
    will be used.
    """
    for event in reversed(run.events(EventKind.EVALUATION)):
        of_model = event.site.model == series.site.model
        if of_model and event.step > series.first_step and not event.detail.get("training"):
            return max(event.step, series.step + 1) if run.ended else event.step
    return None


def normalizes_by_batch(run: Run, site: Site) -> bool:
    """Whether the layer uses batch statistics in training; if not, evaluation changes nothing."""
    flags = run.at("norm.training", site)
    return flags is None or flags.last == 1


def excess_gap(run: Run, site: Site, *, before: int, window: int) -> tuple[float, int]:
    """How far running statistics lie from the batches', beyond the noise of sampling a batch.

    A batch of B samples estimates the mean with variance 1/B and, in units of the standard
    deviation, the scale with 1/(2B): together 1.5/B of the squared gap is noise.

    Returns:
        The median over the last `window` measured steps before step `before` in standard
        deviations, and over how many of them it was taken.
    """
    series = run.at("norm.running_gap", site)
    measured = series.before(before, window) if series else ()
    gaps = [gap for gap in measured if not math.isnan(gap)]
    if not gaps:
        return 0.0, 0
    batches = run.at("batch.size", Site(site.model))
    sizes = batches.before(before, window) if batches else ()
    noise = 1.5 / median(sizes) if sizes else 0.0
    return math.sqrt(max(0.0, median(gaps) ** 2 - noise)), len(gaps)
