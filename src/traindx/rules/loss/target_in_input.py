"""L017: the target stands in what the model is given."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Point
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("L017", severity=Severity.ERROR, reads=("probe.target_copies",), source="probe")
def target_in_input(run: Run) -> Iterator[Evidence]:
    """The target is among the inputs, or a language model is to say what it has just read.

    ## Why it matters
    The loss falls to zero, validation looks as good, and the model has learned to copy. With
    real inputs, where the answer is not there yet, or asked to go on with a text, it is of no use.

    ## How it is measured
    By preflight, on one batch, of the target that a known loss function is given. A feature of a
    table of real numbers, or a place of a window of them, that is the target but for scale and
    offset (correlation above 1 - 1e-6, over 16 samples or more) is a warning. It is an error if the
    target is the sequence of integers that the model is given, unshifted, at 99 % of the positions
    that count, and the model's outputs in evaluation follow from their own and earlier positions
    and not from later ones: of such a model the next element is meant.

    ## How to fix
    Leave the feature out, and look for others that are made from the target. Of sequences:
    `inputs, targets = text[:, :-1], text[:, 1:]`, unless the model or the loss shifts by itself;
    then it must be given both unshifted, and must do it.

    ## False alarms
    Autoencoders and masked language models look at all positions, and are not reported; targets
    that a loss ignores (below 0) do not count. A shift within the loss or the model (teacher
    forcing) is seen as such. An exercise
    whose answer is one of the inputs on purpose is reported.

    ## References
    Kaufman et al., "Leakage in data mining: formulation, detection, and avoidance" (KDD 2011).
    Kapoor and Narayanan, "Leakage and the reproducibility crisis in machine-learning-based science"
    (Patterns 2023).
    """
    for seen in observations(run, "target-in-input"):
        yield _element(seen) if seen.text("what") == "element" else _feature(seen)


def _element(seen: Observation) -> Evidence:
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "the target at each of {steps} positions is the element that {model} has just read, "
            "though its outputs follow from earlier positions only, as if the next one were asked",
            steps=round(seen.number("steps")),
            model=seen.site.model,
        ),
        numbers={"steps": seen.number("steps")},
        point=Point.INPUT,
        cause=say("The target is not shifted by one."),
        fix=say("inputs, targets = text[:, :-1], text[:, 1:]"),
        excluded=(say("positions that the loss ignores"), say("a model that looks ahead")),
    )


def _feature(seen: Observation) -> Evidence:
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "feature {feature} of what {model} is given is the target but for scale and offset",
            feature=round(seen.number("feature")),
            model=seen.site.model,
        ),
        numbers={"feature": seen.number("feature")},
        point=Point.INPUT,
        cause=say("The target, or what it is computed from, is among the features."),
        fix=say(
            "Leave feature {feature} out, and look for others that are made from the target.",
            feature=round(seen.number("feature")),
        ),
        severity=Severity.WARNING,
    )
