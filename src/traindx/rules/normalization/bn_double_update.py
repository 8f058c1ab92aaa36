"""N005: running statistics are updated twice a step, by one batch again or by unlike batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.evaluation.passes import passes_of
from traindx.rules.normalization.running import (
    RECENT,
    never_evaluated,
    no_running_norm,
    recent,
    running_norms,
    running_sites,
)
from traindx.rules.rule import rule
from traindx.run import Run

_WINDOW = 10
_LEAST = 8
"""Samples in a batch from which on its mean says something."""


@rule(
    "N005",
    severity=Severity.WARNING,
    reads=("norm.updates",),
    applies=no_running_norm,
    explained_by=("N003",),
    lasting=True,
)
def bn_double_update(
    run: Run, *, steps: float = 5, gap: float = 1.0, error_gap: float = 2.0
) -> Iterator[Evidence]:
    """BatchNorm updates its statistics twice a step, from one batch again or from unlike batches.

    ## Why it matters
    A part that activation checkpointing runs again in backward averages its batch once more: the
    memory of the statistics is half as long as `momentum` says, and they scatter more. Where two
    kinds of data pass a layer in separate calls (real and generated, two domains), each is centred
    by itself in training, and by the mean of both in evaluation, so that what told them apart is
    lost in training and there in evaluation, where no layer knows it.

    ## How it is measured
    Of a layer called once or more in the training forwards: its counter must have grown by exactly
    twice as many updates at each of the last `steps` measured steps, with no pass without gradient
    that would explain it. Or: the means of the batches of the first two forward passes of a step
    must lie more than `gap` standard deviations apart (RMS over channels, median over the last 10
    measured steps), beyond the noise sqrt(2/B) of batches of B samples, 8 at least, in a
    model that is evaluated in eval mode; over `error_gap` it is an error. One finding per model.

    ## How to fix
    Keep normalizations outside of what is checkpointed, or set their `momentum` to 1 - sqrt(1 -
    momentum). Let unlike batches pass in one call, concatenated, or give each kind of data
    normalization layers of its own.

    ## False alarms
    Micro-batches of gradient accumulation, and two views of the same data, have means as near as
    chance allows. A critic that is never evaluated in eval mode does not use its statistics, and
    is not reported for unlike batches. Not seen: unlike calls within one forward pass.

    ## References
    Chen et al., "Training deep nets with sublinear memory cost" (2016), on recomputation. Ioffe &
    Szegedy, "Batch Normalization" (ICML 2015). Li et al., "Revisiting batch normalization for
    practical domain adaptation" (2017).
    """
    for model in run.models.values():
        norms = running_norms(model)
        twice = _any_twice(run, model)
        again = [n for n in norms if _counts_twice(run, model, n, int(steps))] if twice else []
        several = norms if len(run.newest("norm.pass_gap", model=model.name).steps) else []
        apart = {norm.fqn: far for norm in several if (far := _apart(run, model, norm))[0] > gap}
        if again:
            yield _recomputed(run, model, again)
        elif apart and not never_evaluated(run):
            severity = max(far for far, _ in apart.values()) > error_gap
            yield _unlike(run, model, apart, Severity.ERROR if severity else Severity.WARNING, gap)


def _any_twice(run: Run, model: ModelFacts) -> bool:
    """Whether a layer has updated its statistics twice for each call in the last step."""
    sites = running_sites(model)
    updates, calls = run.newest("norm.updates", sites), run.newest("norm.calls", sites)
    return bool((updates.values == 2 * calls.values).any())


def _counts_twice(run: Run, model: ModelFacts, norm: ModuleFacts, steps: int) -> bool:
    site = Site(model.name, norm.fqn)
    updates, calls = run.at("norm.updates", site), run.at("norm.calls", site)
    if updates is None or calls is None:
        return False
    grown, called = updates.tail(steps), calls.tail(steps)
    twice = all(count > 0 and up == 2 * count for up, count in zip(grown, called, strict=False))
    if len(grown) < steps or len(called) < steps or not twice:
        return False
    passes = {it.step for it in passes_of(run, model.name) if it.batch_norms or it.written}
    measured = {step for step, _ in list(updates)[-steps:]}
    return passes.isdisjoint(measured)


def _apart(run: Run, model: ModelFacts, norm: ModuleFacts) -> tuple[float, float]:
    """By how much the first two batches of a step differ beyond chance, and as measured."""
    site = Site(model.name, norm.fqn)
    series = run.at("norm.pass_gap", site)
    if series is None:
        return 0.0, 0.0
    gaps = [gap for gap in series.tail(_WINDOW) if math.isfinite(gap)]
    sizes = recent(run, "batch.size", Site(model.name), series.step + 1, _WINDOW)
    if len(gaps) < RECENT or not sizes or median(sizes) < _LEAST:
        return 0.0, 0.0
    noise = 2 / median(sizes)
    measured = median(gaps)
    return math.sqrt(max(0.0, measured**2 - noise)), measured


def _recomputed(run: Run, model: ModelFacts, norms: list[ModuleFacts]) -> Evidence:
    first = norms[0]
    calls = run.at("norm.calls", Site(model.name, first.fqn))
    return Evidence(
        site=Site(model.name, first.fqn),
        step=calls.step if calls else run.step,
        message=say(
            "{count} normalization layers of {model} update their statistics twice for each call, "
            "first `{first}`",
            count=len(norms),
            model=model.name,
            first=first.fqn,
        ),
        numbers={"layers": len(norms), "updates": 2 * (calls.last if calls else 1)},
        cause=say("Activation checkpointing runs them again in the backward pass."),
        fix=say(
            "Call the normalizations outside of `checkpoint(...)`, or build them with "
            "momentum={momentum:.3g}, which twice is what is meant.",
            momentum=_half(first.options.get("momentum")),
        ),
        excluded=(say("passes without gradient in train mode"),),
        series=("norm.updates",),
        layers=first_layers(norm.fqn for norm in norms),
    )


def _half(momentum: object) -> float:
    """The momentum that leaves as much after two updates as the given one after one."""
    return 1 - math.sqrt(1 - momentum) if isinstance(momentum, float) and 0 < momentum < 1 else 0.05


def _unlike(
    run: Run,
    model: ModelFacts,
    apart: dict[str, tuple[float, float]],
    severity: Severity,
    threshold: float,
) -> Evidence:
    first, worst = next(iter(apart)), max(apart, key=lambda fqn: apart[fqn][0])
    return Evidence(
        site=Site(model.name, first),
        step=run.step,
        message=say(
            "two forward passes of a step give {count} normalization layers batches whose means "
            "lie up to {far:.2f} standard deviations apart, at `{worst}` (threshold "
            "{threshold:g} beyond the noise of sampling a batch)",
            count=len(apart),
            far=apart[worst][1],
            worst=worst,
            threshold=threshold,
        ),
        numbers={"apart": apart[worst][1], "layers": len(apart)},
        cause=say("Unlike data pass the same layers in separate calls, each centred by itself."),
        fix=say("outputs = {model}(torch.cat([first, second]))", model=model.name),
        excluded=(say("sampling noise"), say("a model never evaluated in eval mode")),
        severity=severity,
        series=("norm.pass_gap",),
        layers=first_layers(apart),
    )
