"""L007: the first layer is given numbers of an unsuitable scale."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import Message, in_turn, say
from traindx.records import Point
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run

_OFFSET_AT_LEAST = 0.3


@rule("L007", severity=Severity.WARNING, reads=("probe.input_rms",), source="probe")
def input_scale(
    run: Run,
    *,
    largest: float = 30,
    smallest: float = 0.02,
    offset: float = 10,
    spread: float = 1000,
) -> Iterator[Evidence]:
    """The network is given numbers that are far from zero mean and unit size, or of unlike sizes.

    ## Why it matters
    Initialization assumes inputs of about unit size. Pixels from 0 to 255 make the first
    activations a hundred times too large: the loss begins in the hundreds, saturating functions
    saturate, and the learning rate that fits is thousands of times smaller. A feature a thousand
    times larger than the rest drowns them, and its direction alone sets the learning rate.

    ## How it is measured
    On one batch, at the input of the first layer with weights (linear, convolution, recurrent), so
    that whatever the model does to its input before is taken into account. Reported are: an RMS
    above `largest`; no element above `smallest`; a mean more than `offset` standard deviations from
    0, and at least 0.3 from it; and a feature (channel) whose RMS is more than `spread` times the
    median of all that are not 0.
    Of a table, so is one same number at one end of a feature, twice or more often, that lies at
    more than five times the range of all others from these: it stands for a missing one, as -999
    does, also after scaling. Nothing is reported if a normalization layer takes the output of that
    layer as it is.

    ## How to fix
    Subtract the mean and divide by the standard deviation of each feature, both taken of the
    training split: `x = (x - mean) / std`. Divide pixels by 255 first. Or begin the model with
    `nn.BatchNorm1d(features, affine=False)`.

    ## False alarms
    Standard normal inputs, pixels from 0 to 1 and normalized images are far from every threshold.
    Sparse counts, in which few words are frequent, stay below `spread` unless they are raw counts
    of thousands. Networks that begin with an embedding are not looked at, nor is a functional
    normalization behind the first layer seen.

    ## References
    LeCun et al., "Efficient BackProp" (1998), section 4.3, on normalizing inputs. CS231n, "Neural
    Networks Part 2", on preprocessing.
    """
    for seen in observations(run, "input-scale"):
        rms = run.at("probe.input_rms", seen.site)
        if rms is None or seen.detail.get("normalized"):
            continue
        thresholds = {"largest": largest, "smallest": smallest, "offset": offset, "spread": spread}
        parts = list(_parts(seen, rms.last, thresholds))
        if parts:
            yield _evidence(seen, rms.last, parts)


def _parts(seen: Observation, rms: float, limit: dict[str, float]) -> Iterator[Message]:
    most = max(abs(seen.number("min")), abs(seen.number("max")))
    if rms > limit["largest"] or 0 < most < limit["smallest"]:
        yield say(
            "they run from {low:.4g} to {high:.4g} with an RMS of {rms:.3g}",
            low=seen.number("min"),
            high=seen.number("max"),
            rms=rms,
        )
    mean, std = seen.number("mean"), seen.number("std")
    if std and abs(mean) > limit["offset"] * std and abs(mean) >= _OFFSET_AT_LEAST:
        yield say(
            "their mean {mean:.4g} is {times:.0f} standard deviations from 0",
            mean=mean,
            times=abs(mean) / std,
        )
    median, most = seen.number("median_rms"), seen.number("greatest_rms")
    if median and most > limit["spread"] * median:
        yield say(
            "feature {feature} of {features} has {times:.0f} times the RMS of the median one",
            feature=int(seen.number("feature")),
            features=int(seen.number("features")),
            times=most / median,
        )
    if marks := int(seen.number("marks", 0)):
        yield say(
            "{value:.4g} stands in them again and again, in {columns} of {features} features and "
            "{marks} elements, at more than 5 times the range of all others from these",
            value=seen.number("mark"),
            columns=int(seen.number("marked")),
            features=int(seen.number("features")),
            marks=marks,
        )


def _evidence(seen: Observation, rms: float, parts: list[Message]) -> Evidence:
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "the numbers that `{module}` is given are of an unsuitable scale: {parts}",
            module=seen.site.fqn,
            parts=in_turn(parts),
        ),
        numbers={
            "rms": rms,
            "mean": seen.number("mean"),
            "std": seen.number("std"),
            "greatest_rms": seen.number("greatest_rms"),
            "median_rms": seen.number("median_rms"),
        },
        point=Point.INPUT,
        cause=say("The input is not brought to zero mean and unit size."),
        fix=say("x = (x - mean) / std  # of each feature, over the training split"),
        excluded=(say("a normalization right behind the first layer"),),
    )
