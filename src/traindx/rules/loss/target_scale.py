"""L016: the targets of a regression are far from anything that a new network gives."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Point
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run

_DISTANCES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


@rule(
    "L016",
    severity=Severity.WARNING,
    reads=("probe.comparisons",),
    source="probe",
    explained_by=("L003",),
)
def target_scale(
    run: Run, *, largest: float = 1000, times: float = 30, unlike: float = 100
) -> Iterator[Evidence]:
    """The targets of a regression are far from what a network gives, or from each other.

    ## Why it matters
    A new network gives numbers of about unit size. If the targets are prices in full, its first
    thousands of steps go into growing that far, with a loss of millions and gradients to match: an
    optimizer that normalizes its steps moves each weight by no more than the learning rate, and one
    that does not is torn apart. The offset alone is nearly all of the loss, and hides what tells
    samples apart. So does a number such as -99 where a target is missing; and of two targets in
    units of their own the larger one is all that counts.

    ## How it is measured
    By preflight, on one batch, of what `mse_loss`, `l1_loss`, `smooth_l1_loss` or `huber_loss` are
    given. Reported are targets whose RMS about 0 is more than `largest`, and more than `times` the
    RMS of the model's outputs. Hundreds are reached in a usual training: with 100 units in the last
    hidden layer, Adam at a learning rate of 0.001 moves the output by about 0.1 a step, and is
    10,000 steps on its way to 1,000.

    Reported, too, is one same number at one end of the targets, twice or more often, that lies at
    more than five times the range of all others from these, where targets are labels of the data,
    in a loader's data set or a tensor of the program; and of 2 to 16 targets of each sample
    one whose standard deviation is more than `unlike` times that of another, so that the latter
    makes up less than a ten-thousandth of a squared error.

    ## How to fix
    Subtract the mean and divide by the standard deviation of the training targets, and take that
    back in what the model predicts: `y = (y - mean) / std`; `predicted = output * std + mean`. Or
    initialize the last bias with the mean and multiply the output by a constant.

    ## False alarms
    A model that multiplies its output by a constant gives numbers of that size, and is not
    reported. One that is pretrained on such targets does too. A linear regression by gradient
    descent on large targets works with a learning rate made for it.

    ## References
    LeCun et al., "Efficient BackProp" (1998), section 4.5, on choosing target values. Karpathy, "A
    Recipe for Training Neural Networks" (2019), "init well", on the bias of the last layer.
    """
    for seen in observations(run, "output-and-target"):
        if seen.text("function") not in _DISTANCES:
            continue
        size = math.hypot(seen.number("target_mean"), seen.number("target_std"))
        if marks := int(seen.number("marks", 0)):
            yield _marked(seen, marks)
        elif seen.number("unit_ratio", 1) > unlike:
            yield _unlike(seen)
        elif size > largest and size > times * seen.number("prediction_rms", math.inf):
            yield _evidence(seen, size)


def _evidence(seen: Observation, size: float) -> Evidence:
    mean, std, given = (seen.number(n) for n in ("target_mean", "target_std", "prediction_rms"))
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "the targets of {model} are {mean:.4g} on average, with a standard deviation of "
            "{std:.3g}, and what it gives before training has an RMS of {given:.2g}",
            model=seen.site.model,
            mean=mean,
            std=std,
            given=given,
        ),
        numbers={"target_mean": mean, "target_std": std, "target_rms": size, "output_rms": given},
        point=Point.OUTPUT,
        cause=say("The targets are not scaled, so that growing to their size comes first."),
        fix=say("y = (y - mean) / std  # of the training targets; predicted = output * std + mean"),
    )


def _marked(seen: Observation, marks: int) -> Evidence:
    value = seen.number("mark")
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "{marks} targets of {model} are {value:.4g}, at more than 5 times the range of all "
            "others from these",
            marks=marks,
            model=seen.site.model,
            value=value,
        ),
        numbers={"mark": value, "marks": float(marks)},
        point=Point.OUTPUT,
        cause=say("A number that stands for a missing target is learned as if it were one."),
        fix=say("known = y != MISSING; x, y = x[known], y[known]"),
    )


def _unlike(seen: Observation) -> Evidence:
    ratio = seen.number("unit_ratio")
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "one of the targets of {model} varies {ratio:.0f} times as much as another, which "
            "hardly counts in the loss",
            model=seen.site.model,
            ratio=ratio,
        ),
        numbers={"unit_ratio": ratio},
        point=Point.OUTPUT,
        cause=say("The targets are in units of their own, and their errors are added as they are."),
        fix=say("y = (y - y.mean(0)) / y.std(0)  # each of the training targets; and back"),
    )
