"""L004: a few samples cannot be learned by heart."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.probed import STEP, observation
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "L004",
    severity=Severity.ERROR,
    reads=("probe.overfit_fraction",),
    source="probe",
    explained_by=("G005", "L002", "L003", "L007", "L016", "N012", "N018", "S001", "S002", "S012"),
)
def tiny_overfit_fail(
    run: Run, *, remaining: float = 0.05, much: float = 0.3
) -> Iterator[Evidence]:
    """A few samples cannot be learned by heart, so that a whole data set cannot be either.

    ## Why it matters
    Twenty samples are learned by heart by nearly any network that is put together rightly, in a
    hundred steps. One that cannot do that has a fault between its input and its loss that no
    amount of data, time or tuning will repair: a gradient that does not arrive, an output that
    cannot take the values of the target, a loss that is given something else than it expects.

    ## How it is measured
    By preflight, which trains the model on 20 samples of its batch, evenly spaced (4 where a sample
    has many targets), with dropout off and nothing but the data term in the loss, by Adam with
    rates of 0.003, 0.0003 and 0.03, at most 150 steps each, and the same random numbers in every
    step; if half of the loss is gone then and it is not enough, 600 steps with the best of them.
    What is left of the loss, over that of the best guess that does not look at the input, must fall
    to `remaining`; over `much`, and for losses that stop being finite, it is an error, else a
    warning. Soft targets and label smoothing are taken into account. The model is afterwards as
    before.

    ## How to fix
    Look at the other findings first. Then take the model apart: does the last layer alone learn?
    Do two samples with different targets give different outputs? Has every parameter a gradient?

    ## False alarms
    Samples that contradict each other (the same input with different targets), losses that are
    bounded from below by something else than their targets, and models of very few parameters
    cannot be fitted. Adversarial and contrastive losses have no such floor, and are not tried.

    ## References
    CS231n notes, "Neural Networks Part 3: Learning and Evaluation", "Overfit a tiny subset of
    data". Karpathy, "A Recipe for Training Neural Networks" (2019), "overfit one batch".
    """
    for series in run.series("probe.overfit_fraction"):
        fraction, site = series.last, series.site
        if fraction <= remaining:
            continue
        seen, steps = (
            observation(run, "overfit-tiny-subset", site),
            run.at("probe.overfit_steps", site),
        )
        samples = round(seen.number("samples")) if seen is not None else 0
        finite = math.isfinite(fraction)
        yield Evidence(
            site=site,
            step=STEP,
            message=_left(site.model, samples, fraction)
            if finite
            else _broken(site.model, samples),
            numbers={"remaining": fraction, "steps": steps.last if steps else math.nan},
            cause=say(
                "Something between the input of {model} and its loss keeps it from learning "
                "anything at all.",
                model=site.model,
            ),
            fix=say(
                "Train on two samples, and follow their outputs and gradients layer by layer: "
                "`traindx run` on such a script names the first that does not move."
            ),
            excluded=(say("dropout"), say("penalties and other terms of the loss")),
            severity=Severity.ERROR if fraction > much or not finite else Severity.WARNING,
        )


def _left(model: str, samples: int, fraction: float) -> str:
    return say(
        "{model} cannot learn {samples} samples by heart: {percent:.0f} % of the loss of a guess "
        "is left",
        model=model,
        samples=samples,
        percent=100 * fraction,
    )


def _broken(model: str, samples: int) -> str:
    return say(
        "{model} cannot learn {samples} samples by heart: its loss is never finite",
        model=model,
        samples=samples,
    )
