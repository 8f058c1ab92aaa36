"""G009: gradients are clipped to next to nothing at every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import RUN, Site
from traindx.rules.rule import rule
from traindx.run import Run, Series


@rule(
    "G009",
    severity=Severity.WARNING,
    reads=("clip.ratio",),
    explained_by=("G002", "G010", "L011", "L016"),
    lasting=True,
)
def clip_saturated(
    run: Run,
    *,
    ratio: float = 10.0,
    share: float = 0.95,
    window: float = 20,
    least: float = 10,
    moved: float = 1e-4,
) -> Iterator[Evidence]:
    """Nearly every gradient is clipped to a small part of itself, and the weights hardly move.

    ## Why it matters
    Clipping is for the rare gradient that is far too large. A bound that every gradient exceeds by
    far sets their size in place of the loss: the step has the same length wherever training stands,
    and if the bound is tiny, so is the learning rate, or Adam's eps is larger than what it divides.

    ## How it is measured
    By the norm that `torch.nn.utils.clip_grad_norm_` found, over the largest it allows, at the last
    call of each measured step. Of the last `window` (of at least `least`) a share of at least
    `share` exceeds `ratio`, and in the last of these steps the median weight, over the model, moved
    by less than `moved` of its size. Healthy is 0.001 to 0.1 of it at the start of training.

    ## How to fix
    Choose the bound by the norms: the 90th percentile of those of the first hundred steps clips one
    gradient in ten. `clip_grad_norm_` returns them.

    ## False alarms
    Strong clipping with a learning rate that was chosen for it moves the weights as far as any
    other, and is none; so it is with Adam, to which the size of the gradient is nothing, unless
    next to nothing is left. A warmup begins with steps as small (`warmup`). So does the end of a
    schedule: silent where the learning rate is below a tenth of its highest.

    ## References
    Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks" (2013),
    section 3.2, on choosing the threshold by the average norm. CS231n, "Neural Networks Part 3",
    on the ratio of updates to weights.
    """
    series = run.at("clip.ratio", RUN)
    recent = series.tail(int(window)) if series else ()
    if series is None or len(recent) < least or _is_slow(run):
        return
    above = sum(value > ratio for value in recent) / len(recent)
    ratios = [s.last for s in run.series("update.ratio") if s.step == series.step and s.last > 0]
    if above >= share and ratios and (typical := median(ratios)) < moved:
        yield _evidence(run, series, recent, above, typical, ratio)


def _is_slow(run: Run) -> bool:
    """Whether steps are small because the learning rate is low, or not up yet."""
    return any(rate.last < 0.1 * float(rate.values.max()) for rate in run.series("lr"))


def _evidence(
    run: Run, series: Series, recent: Sequence[float], above: float, typical: float, ratio: float
) -> Evidence:
    norm = median(recent)
    return Evidence(
        site=Site("", next(iter(run.optimizers))) if len(run.optimizers) == 1 else RUN,
        step=series.step,
        message=say(
            "{above:.0%} of the last gradients exceed the bound of clipping {ratio:g}-fold, in the "
            "median {norm:.3g}-fold, and a step changes the median weight by {typical:.1e} of it",
            above=above,
            ratio=ratio,
            norm=norm,
            typical=typical,
        ),
        numbers={"share": above, "ratio": norm, "update_ratio": typical},
        cause=say("The bound of clipping is far below the norms of the gradients."),
        fix=say(
            "nn.utils.clip_grad_norm_(model.parameters(), max_norm={factor:.0f} * max_norm)",
            factor=norm,
        ),
        excluded=(say("a learning rate that is chosen for it"), say("a low learning rate")),
        series=("clip.ratio", "update.ratio", "loss"),
    )
