"""Running statistics as the rules see them: which layers keep them, and how far off they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from traindx.facts import ModelFacts, ModuleFacts
from traindx.messages import listed, say
from traindx.records import EventKind, Site
from traindx.rules.order import network_order, of_facts
from traindx.run import Run, Series

RECENT = 3
"""Measured steps that show a gap as it is now: few, since it closes while statistics settle."""
_FORGOTTEN = 0.05
"""Weight under which the initial statistics no longer count."""


@of_facts
def running_norms(model: ModelFacts) -> list[ModuleFacts]:
    """The normalization layers that keep running statistics, in network order."""
    place = network_order(model)
    norms = [module for module in model.modules if module.options.get("track_running_stats")]
    return sorted(norms, key=lambda norm: place[norm.fqn])


@of_facts
def running_sites(model: ModelFacts) -> tuple[Site, ...]:
    """Where they are."""
    return tuple(Site(model.name, norm.fqn) for norm in running_norms(model))


def no_running_norm(run: Run) -> str:
    """Why rules on running statistics do not apply: there are none."""
    if any(running_norms(model) for model in run.models.values()):
        return ""
    return say(
        "no normalization layer with running statistics in {models}",
        models=listed(run.models) or say("any model seen"),
    )


def never_evaluated(run: Run) -> str:
    """Why rules on evaluation do not apply: no running statistics, or never used so far."""
    if reason := no_running_norm(run):
        return reason
    passes = run.events(EventKind.EVALUATION)
    used = any(event.step > 0 and not event.detail.get("training") for event in passes)
    return "" if used else say("no evaluation pass in eval mode was seen after training began")


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


def used_state(run: Run, model: ModelFacts) -> object:
    """What all follows from that was measured before a model's statistics were last used."""
    uses = run.events(EventKind.EVALUATION)
    measured = run.events(EventKind.MEASURED)
    last_use = uses[-1].step if uses else -1
    # What is measured at a later step is no longer before it.
    before = min(measured[-1].step, last_use) if measured else -1
    flags = run.newest("norm.training", running_sites(model)).values.tobytes()
    return model, run.num_events(EventKind.EVALUATION), before, run.ended, flags


def normalizes_by_batch(run: Run, site: Site) -> bool:
    """Whether the layer uses batch statistics in training; if not, evaluation changes nothing."""
    flags = run.at("norm.training", site)
    return flags is None or flags.last == 1


def settled(run: Run, site: Site, *, before: int, window: int) -> int:
    """How many of the last `window` measured steps had forgotten the initial statistics.

    No batch can agree with those; if they never go, that is N002's to tell.
    """
    weights = recent(run, "norm.initial_weight", site, before, window)
    return sum(weight <= _FORGOTTEN for weight in weights)


@dataclass(frozen=True, slots=True)
class Gap:
    """How far running statistics lie from the batches', in standard deviations.

    Attributes:
        measured: The median of what was measured.
        noise: What sampling a batch contributes to it, root mean square.
        steps: Measured steps it is the median of.
    """

    measured: float = 0.0
    noise: float = 0.0
    steps: int = 0

    @property
    def excess(self) -> float:
        """What noise does not explain: independent deviations add up as squares."""
        return math.sqrt(max(0.0, self.measured**2 - self.noise**2))


def gap_of(
    run: Run, model: ModelFacts, norm: ModuleFacts, *, before: int, window: int, least: float
) -> Gap:
    """The gap of a layer over the last `window` measured steps before step `before`.

    Of one up to `least` the noise does not matter, and is not looked for.
    """
    site = Site(model.name, norm.fqn)
    measured = recent(run, "norm.running_gap", site, before, window)
    gaps = [gap for gap in measured if not math.isnan(gap)]
    if not gaps:
        return Gap()
    typical = median(gaps)
    samples = samples_of(run, site, norm, before, window) if typical > least else 0.0
    return Gap(typical, math.sqrt(1.5 / samples) if samples else 0.0, len(gaps))


def samples_of(run: Run, site: Site, norm: ModuleFacts, before: int, window: int) -> float:
    """As how many independent samples a batch estimates the layer's statistics; 0 if unknown.

    N samples estimate the mean with variance 1/N and, in units of the standard deviation, the scale
    with 1/(2N): together 1.5/N of the squared gap is noise. A layer that averages n elements a
    channel, the positions of a batch of B images, has between B (positions fully correlated) and n
    (independent) of them; their geometric mean is the cautious middle.
    """
    batches = recent(run, "batch.size", Site(site.model), before, window)
    batch = median(batches) if batches else 0.0
    counts = recent(run, "output.count", site, before, window)
    features = norm.options.get("num_features")
    if not counts or not isinstance(features, int) or not features:
        return batch
    return max(batch, math.sqrt(batch * median(counts) / features))


def recent(run: Run, quantity: str, site: Site, before: int, window: int) -> Sequence[float]:
    """The last `window` values of a place measured before a step; none if it was not measured."""
    series = run.at(quantity, site)
    return series.before(before, window) if series else ()
