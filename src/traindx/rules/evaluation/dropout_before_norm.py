"""E009: BatchNorm averages variances that dropout has raised, and meets others in evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.normalization.running import (
    never_evaluated,
    normalizes_by_batch,
    recent,
    running_norms,
)
from traindx.rules.order import of_facts
from traindx.rules.rule import rule
from traindx.run import Run

_WINDOW = 10


@rule(
    "E009",
    severity=Severity.WARNING,
    reads=("norm.training",),
    applies=never_evaluated,
    lasting=True,
)
def dropout_before_norm(run: Run, *, ratio: float = 2.0) -> Iterator[Evidence]:
    """BatchNorm behind dropout averages variances that evaluation does not have.

    ## Why it matters
    Dropout multiplies what it keeps by 1/(1 - p), so that the mean stays. The variance does not:
    it is larger in training than in evaluation. BatchNorm behind it averages that larger variance
    and divides by it in evaluation, so that every layer behind sees smaller inputs than those it
    was trained on.

    ## How it is measured
    Of a dropout layer in training whose next normalization in the order of calls is a BatchNorm
    with running statistics: with the mean m and the mean square s of its output, (s - m^2) over
    ((1 - p) s - m^2) is by how much its variance is larger than in evaluation. The median over the
    last 10 measured steps must exceed `ratio`.

    ## How to fix
    Put dropout behind the last BatchNorm, before the last layer, or use a lower rate.

    ## False alarms
    The mean is taken over all units together, so that the true ratio is larger where their means
    differ. A rate up to 0.3 behind a ReLU has a ratio of 1.6 and is not reported. What runs beside
    the dropout, a skip connection, dilutes its variance and is not looked at.

    ## References
    Li et al., "Understanding the disharmony between dropout and batch normalization by variance
    shift" (CVPR 2019).
    """
    for model in run.models.values():
        for dropout, norm in _pairs(model):
            site = Site(model.name, norm.fqn)
            found = _ratio(run, Site(model.name, dropout.fqn), dropout)
            if found is not None and found[1] > ratio and normalizes_by_batch(run, site):
                yield _evidence(model, dropout, norm, *found, ratio)


@of_facts
def _pairs(model: ModelFacts) -> list[tuple[ModuleFacts, ModuleFacts]]:
    """Each dropout layer that a BatchNorm follows, and that."""
    running = {norm.fqn for norm in running_norms(model)}
    pairs: list[tuple[ModuleFacts, ModuleFacts]] = []
    before: list[ModuleFacts] = []
    for module in model.in_network_order():
        if module.order is None:
            break
        if module.kind.startswith("Dropout"):
            before.append(module)
        elif module.fqn in running:
            pairs += [(dropout, module) for dropout in before]
            before = []
        elif "eps" in module.options:
            before = []
    return pairs


def _ratio(run: Run, site: Site, dropout: ModuleFacts) -> tuple[int, float] | None:
    """The last step measured, and how many times the variance of evaluation that of training is."""
    p, sizes = dropout.options.get("p"), run.at("output.rms", site)
    if sizes is None or not isinstance(p, float) or not 0 < p < 1:
        return None
    end = sizes.step + 1
    means = recent(run, "output.mean", site, end, _WINDOW)
    ratios = [
        (rms**2 - mean**2) / left
        for rms, mean in zip(sizes.before(end, _WINDOW), means, strict=False)
        if (left := (1 - p) * rms**2 - mean**2) > 0
    ]
    return (sizes.step, median(ratios)) if ratios else None


def _evidence(
    model: ModelFacts,
    dropout: ModuleFacts,
    norm: ModuleFacts,
    step: int,
    ratio: float,
    threshold: float,
) -> Evidence:
    return Evidence(
        site=Site(model.name, dropout.fqn),
        step=step,
        message=say(
            "the variance behind `{dropout}` is {ratio:.2f} times as large in training as in "
            "evaluation (threshold {threshold:g}), and `{norm}` averages that of training",
            dropout=dropout.fqn,
            ratio=ratio,
            threshold=threshold,
            norm=norm.fqn,
        ),
        numbers={"ratio": ratio},
        cause=say("Dropout keeps the mean and raises the variance, in training only."),
        fix=say("Move `{dropout}` behind the last BatchNorm.", dropout=dropout.fqn),
        layers=(dropout.fqn, norm.fqn),
    )
