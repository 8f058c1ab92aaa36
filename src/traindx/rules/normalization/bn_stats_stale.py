"""N002: evaluation uses running statistics that are still mostly their initial values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import Message, say
from traindx.records import Site
from traindx.rules.normalization.running import (
    RECENT,
    Gap,
    gap_of,
    never_evaluated,
    normalizes_by_batch,
    running_norms,
    running_sites,
    used_at,
    used_state,
)
from traindx.rules.remembered import remembered
from traindx.rules.rule import rule
from traindx.run import Run, Series

_ENOUGH = 0.01
"""Weight of the initial values that the fix leaves."""


@dataclass(frozen=True, slots=True)
class _Stale:
    """One layer whose statistics had not settled when they were used."""

    norm: ModuleFacts
    used_at: int
    weight: float
    updates: float
    gap: Gap


@rule(
    "N002",
    severity=Severity.ERROR,
    reads=("norm.initial_weight",),
    applies=never_evaluated,
    explained_by=("N004", "N022"),
    remedies=("recalibrate-bn", "raise-bn-momentum"),
    lasting=True,
)
def bn_stats_stale(
    run: Run, *, initial_weight: float = 0.05, gap: float = 0.5
) -> Iterator[Evidence]:
    """Evaluation normalizes by running statistics that have seen too few batches to be right.

    ## Why it matters
    Running statistics start at mean 0 and variance 1 and move by `momentum` with each training
    batch. After n updates the start still weighs (1 - momentum)^n: with momentum 0.01 it takes 299
    updates to bring that under 5 %. Until then a network that trains well evaluates badly, since
    in eval mode it normalizes by numbers that never were its own.

    ## How it is measured
    At the last evaluation pass in eval mode after training began, or at the end of training if
    that went on after it: the initial statistics must weigh more than `initial_weight` (exact
    arithmetic), and the normalized batch must move by more than `gap` standard deviations (RMS
    over channels) if the running statistics replace the batch's own, beyond the noise of sampling
    the batch. The finding tells that move as measured, and the noise beside it, whose square is
    1.5/N: N is the batch size B, or sqrt(B n) where the layer's output shows that it averages n
    elements a channel. Updates since the last measured step count, too. One finding per model, at
    its first such layer.

    ## How to fix
    Raise `momentum`, or run enough batches through the model in train mode without gradient before
    evaluating; the finding computes both for your run. `momentum=None` averages all batches
    equally and leaves no weight on the start.

    ## False alarms
    An evaluation before training says nothing. One early in the first epoch is reported, and the
    finding clears at the next evaluation if the statistics have settled by then; where they will
    have after as many updates again, nothing is said before the end. Pretrained
    layers have many updates behind them, and layers kept in eval mode while training evaluate as
    they train; neither is reported. Inputs that are standardized anyway have no gap.

    ## References
    Ioffe & Szegedy, "Batch Normalization" (ICML 2015), section 3.1. Wu & Johnson, "Rethinking
    'Batch' in BatchNorm" (2021), section 3, on precise statistics. PyTorch documentation,
    `torch.nn.BatchNorm2d`, on `momentum`.
    """
    for model in run.models.values():
        norms = running_norms(model)
        updates = run.newest("norm.updates", running_sites(model)).values.tobytes()
        stale = remembered(
            run,
            (bn_stats_stale, model.name),
            (used_state(run, model), updates, initial_weight, gap, run.ended),
            partial(_stale, run, model, initial_weight, gap),
        )
        if stale:
            yield _evidence(model, stale, len(norms), initial_weight, gap)


def _stale(run: Run, model: ModelFacts, initial_weight: float, gap: float) -> list[_Stale]:
    looked_at = (_look_at(run, model, n, initial_weight, gap) for n in running_norms(model))
    return [it for it in looked_at if it and it.gap.excess > gap]


def _look_at(
    run: Run, model: ModelFacts, norm: ModuleFacts, most_weight: float, least_gap: float
) -> _Stale | None:
    """The state of a layer's statistics where they were used, if the start weighed too much."""
    site = Site(model.name, norm.fqn)
    weights, updates = run.at("norm.initial_weight", site), run.at("norm.tracked", site)
    if weights is None or updates is None or not normalizes_by_batch(run, site):
        return None
    step = used_at(run, weights)
    if step is None:
        return None
    weight, seen = weights.before(step, 1)[-1], updates.before(step, 1)[-1]
    unseen = _updates_not_measured(run, updates, step)
    # (1 - momentum)^seen, carried on to the updates between the last measured step and the use.
    weight = weight ** ((seen + unseen) / seen) if seen else weight
    lasts = weight * weight > most_weight or run.ended
    if not (weight > most_weight and lasts):
        return None
    gap = gap_of(run, model, norm, before=step, window=RECENT, least=least_gap)
    return _Stale(norm, step, weight, seen + unseen, gap)


def _updates_not_measured(run: Run, tracked: Series, used_at: int) -> float:
    """Updates in the steps after the last one measured before the statistics were used."""
    measured = tracked.step_before(used_at)
    per_step = run.at("norm.updates", tracked.site)
    if measured is None or per_step is None:
        return 0.0
    return (used_at - 1 - measured) * per_step.last


def _evidence(
    model: ModelFacts, stale: list[_Stale], norms: int, initial_weight: float, gap: float
) -> Evidence:
    first, worst = stale[0], max(stale, key=lambda it: it.gap.excess)
    return Evidence(
        site=Site(model.name, first.norm.fqn),
        step=first.used_at,
        message=say(
            "after {updates:.0f} updates the initial running statistics still weigh {weight:.0%} "
            "(threshold {most_weight:.0%}) in {stale} of {norms} normalization layers, and in eval "
            "mode `{worst}` is off by {gap:.2f} standard deviations, with a noise of {noise:.2f} "
            "(threshold {most_gap:g} beyond it)",
            updates=first.updates,
            weight=first.weight,
            most_weight=initial_weight,
            stale=len(stale),
            norms=norms,
            worst=worst.norm.fqn,
            gap=worst.gap.measured,
            noise=worst.gap.noise,
            most_gap=gap,
        ),
        numbers={
            "initial_weight": first.weight,
            "updates": first.updates,
            "gap": worst.gap.measured,
            "noise": worst.gap.noise,
            "layers": len(stale),
            "momentum_needed": _momentum_needed(first.updates),
        },
        cause=say(
            "`momentum={momentum}` is too small for {updates:.0f} updates.",
            momentum=first.norm.options.get("momentum"),
            updates=first.updates,
        ),
        fix=_fix(model, first),
        excluded=(
            say("an evaluation before training"),
            say("sampling noise"),
            say("standardized inputs"),
        ),
        series=("norm.running_gap", "norm.initial_weight"),
        layers=first_layers(it.norm.fqn for it in stale),
    )


def _momentum_needed(updates: float) -> float:
    """The momentum, to two digits after the point, that leaves under 1 % after these updates."""
    return math.floor(100 * (1 - _ENOUGH ** (1 / max(updates, 1))) + 1) / 100


def _fix(model: ModelFacts, stale: _Stale) -> Message:
    fix = say(
        """\
# Before training; leaves under 1 % of the start after {updates:.0f} updates:
for m in {model}.modules():
    if hasattr(m, "running_mean"):
        m.momentum = {momentum}""",
        updates=stale.updates,
        model=model.name,
        momentum=_momentum_needed(stale.updates),
    )
    momentum = stale.norm.options.get("momentum")
    if not isinstance(momentum, float) or not 0 < momentum < 1:
        return fix
    batches = math.floor(math.log(_ENOUGH) / math.log1p(-momentum)) + 1
    return say(
        """\
{fix}
# Or before evaluating: run {batches} batches through {model}.train() under torch.no_grad().""",
        fix=fix,
        batches=batches,
        model=model.name,
    )
