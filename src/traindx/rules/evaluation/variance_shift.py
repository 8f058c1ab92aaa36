"""E017: dropout before a batch normalization changes the variance that it meets."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "E017",
    severity=Severity.WARNING,
    reads=("probe.variance_shift",),
    source="probe",
    explained_by=("E009",),
)
def variance_shift(run: Run, *, shift: float = 1.25, much: float = 2.0) -> Iterator[Evidence]:
    """Dropout before a batch normalization gives it another variance than evaluation will.

    ## Why it matters
    Dropout keeps the mean, but not the variance. What a batch normalization behind it collects in
    training is the variance with dropout; in evaluation it divides by that what has less, so that
    every layer behind is given a signal that is too small by the root of the ratio.

    ## How it is measured
    By preflight: the variance of each channel that a batch normalization is given in training, over
    4 passes with other random numbers, over that of a pass in which dropout does what it does on
    average. It is told if the mean over the channels has grown by more than the factor `shift`:
    as information up to `much`, as a warning beyond. The dropout is the last one called before.
    Dropout of a signal that varies between samples as much as it is large makes the variance
    1/(1 - p) times as large. What a new model has beyond that is of units that hardly vary yet, as
    those of a softplus, which training changes; so a warning takes a p that makes `much` of it.

    ## How to fix
    Move the dropout behind the last normalization, or lower its `p`; or replace the normalization
    behind it by one that needs no running statistics, as `nn.LayerNorm`.

    ## False alarms
    Networks train and score well with a moderate shift, which is why up to `much` it is no more
    than information. Running statistics that are estimated anew in evaluation mode, as
    `traindx norm recalibrate` does, make up for it.

    ## References
    Li, Chen, Hu & Yang, "Understanding the disharmony between dropout and batch normalization by
    variance shift" (CVPR 2019), sections 3 and 4.
    """
    for seen in observations(run, "variance-shift"):
        if seen.number("shift") > shift:
            yield _evidence(seen, much)


def _evidence(seen: Observation, much: float) -> Evidence:
    found, p = seen.number("shift"), seen.number("p")
    lasting = 1 / (1 - p) if p < 1 else math.inf
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "with the dropout of `{dropout}` (p = {p:g}) `{norm}` is given {shift:.2f} times the "
            "variance that it will be given in evaluation",
            dropout=seen.text("dropout"),
            p=p,
            norm=seen.site.fqn,
            shift=found,
        ),
        numbers={"shift": found, "p": p},
        cause=say("Dropout keeps the mean and adds variance; the running variance includes it."),
        fix=say("Move `{dropout}` behind the last normalization.", dropout=seen.text("dropout")),
        severity=Severity.WARNING if found > much and lasting >= much else Severity.INFO,
    )
