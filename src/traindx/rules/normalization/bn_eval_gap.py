"""N001: running statistics lie far from those of the batches the model trains on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from traindx.facts import ModelFacts
from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import say
from traindx.records import Site
from traindx.rules.normalization.running import (
    RECENT,
    Gap,
    gap_of,
    never_evaluated,
    normalizes_by_batch,
    running_norms,
    settled,
    used_at,
    used_state,
)
from traindx.rules.remembered import remembered
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "N001",
    severity=Severity.WARNING,
    reads=("norm.running_gap",),
    applies=never_evaluated,
    explained_by=(
        "G006",
        "L018",
        "N002",
        "N003",
        "N004",
        "N005",
        "N010",
        "N012",
        "N015",
        "N019",
        "N021",
        "N022",
        "O001",
    ),
    remedies=("recalibrate-bn",),
    lasting=True,
)
def bn_eval_gap(
    run: Run, *, gap: float = 0.5, error_gap: float = 1.0, window: float = 10
) -> Iterator[Evidence]:
    """In eval mode the model normalizes by other statistics than those it was trained with.

    ## Why it matters
    In train mode a batch is normalized by its own mean and variance, in eval mode by the running
    ones. Where the two differ, every layer behind sees shifted and scaled inputs in evaluation
    that it never saw in training, and the loss in eval mode is worse than the same weights deserve.

    ## How it is measured
    Per layer, as the RMS over channels of how far the normalized batch moves, in its own standard
    deviations, if the running statistics replace the batch's. Before the model's last evaluation
    pass in eval mode (or at the end of its training, if that came later) the median over the last
    `window` measured steps must exceed `gap` beyond the noise of sampling a batch, and so must that
    over the last 3; above `error_gap` it is an error. The finding tells the median as measured, and
    the noise beside it. The square of the noise is 1.5/N, N the independent samples in a batch:
    its size B, or sqrt(B n) where the layer's output shows that it averages n elements a channel
    (the positions of images are neither independent nor all alike). Steps at which the initial
    statistics still weigh more than 5 % do not count: that gap is N002's. Layers that train in eval
    mode are left out. With several training passes in one step the batch's statistics are the mean
    over these passes. One finding per model, at its first such layer.

    ## How to fix
    Estimate the statistics again before evaluating: run some hundred training batches through the
    model in train mode without gradient, with `momentum=None` after `reset_running_stats()`. If
    that closes the gap for good, raise `momentum`; if it comes back, the batches differ from each
    other: shuffle them, mix unlike domains (real and generated) in every batch, give each domain
    normalization layers of its own, or use GroupNorm.

    ## False alarms
    A few batches that differ from the rest do not move the median, and a gap of the first steps
    that has closed since is not there any more. Small batches scatter by their size, which is
    taken off. Dropout does not enter: both statistics are of the same training pass. A model whose
    weights move fast (a high learning rate) leaves its running statistics behind for as long as it
    does; that gap is real, and closes as it settles. Not seen: domains in separate forward passes
    of one step are averaged, so that a layer whose running statistics fit none of them may have no
    gap to their mean.

    ## References
    Ioffe & Szegedy, "Batch Normalization" (ICML 2015), section 3.1. Ioffe, "Batch
    Renormalization" (NeurIPS 2017), on the dependence on the batch. Wu & Johnson, "Rethinking
    'Batch' in BatchNorm" (2021).
    """
    for model in run.models.values():
        gaps = remembered(
            run,
            (bn_eval_gap, model.name),
            (used_state(run, model), window, gap),
            partial(_gaps, run, model, int(window), gap),
        )
        far = {fqn: found for fqn, (found, _) in gaps.items() if found.excess > gap}
        if far:
            step = next(gaps[fqn][1] for fqn in far)
            worst = max(found.excess for found in far.values())
            severity = Severity.ERROR if worst > error_gap else Severity.WARNING
            yield _evidence(model, far, step, severity, gap)


def _gaps(run: Run, model: ModelFacts, window: int, gap: float) -> dict[str, tuple[Gap, int]]:
    """Of each layer with a gap over `gap`, by fqn: that gap, and the step the layer was used at."""
    found: dict[str, tuple[Gap, int]] = {}
    for norm in running_norms(model):
        site = Site(model.name, norm.fqn)
        series = run.at("norm.running_gap", site)
        step = used_at(run, series) if series else None
        if step is not None and normalizes_by_batch(run, site):
            num_settled = settled(run, site, before=step, window=window)
            lasting = gap_of(run, model, norm, before=step, window=num_settled, least=gap)
            if lasting.steps >= RECENT and lasting.excess > gap:
                present = gap_of(run, model, norm, before=step, window=RECENT, least=gap)
                found[norm.fqn] = min(lasting, present, key=lambda gap: gap.excess), step
    return found


def _evidence(
    model: ModelFacts,
    far: dict[str, Gap],
    step: int,
    severity: Severity,
    threshold: float,
) -> Evidence:
    norms = len(running_norms(model))
    first, worst = next(iter(far)), max(far, key=lambda fqn: far[fqn].excess)
    gap = far[worst]
    return Evidence(
        site=Site(model.name, first),
        step=step,
        message=say(
            "in eval mode {far} of {norms} normalization layers are off by more than {threshold:g} "
            "standard deviations beyond the noise of sampling a batch, `{worst}` by {gap:.2f} with "
            "a noise of {noise:.2f} (median of {steps} measured steps before)",
            far=len(far),
            norms=norms,
            threshold=threshold,
            worst=worst,
            gap=gap.measured,
            noise=gap.noise,
            steps=gap.steps,
        ),
        numbers={"gap": gap.measured, "noise": gap.noise, "layers": len(far)},
        cause=say("The running statistics are not those of the batches seen in training."),
        fix=say(
            """\
# Before evaluating, estimate the statistics again from 100 training batches or more:
for m in {model}.modules():
    if hasattr(m, "reset_running_stats"):
        m.reset_running_stats()
        m.momentum = None
{model}.train()
with torch.no_grad():
    for inputs, _ in training_batches:
        {model}(inputs)""",
            model=model.name,
        ),
        excluded=(say("dropout"), say("one odd batch"), say("sampling noise")),
        series=("norm.running_gap",),
        severity=severity,
        layers=first_layers(far),
    )
