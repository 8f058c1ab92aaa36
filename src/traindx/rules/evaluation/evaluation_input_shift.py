"""E013: in evaluation a model is given inputs in another scale than those it was trained on."""

from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import Event, EventKind, Site
from traindx.rules.rule import rule
from traindx.run import Run


def _no_inputs(run: Run) -> str:
    return "" if _latest(run) else say("no evaluation on inputs of the shape of training was seen")


def _latest(run: Run) -> list[Event]:
    """The last comparison of each model's inputs."""
    latest = {event.site: event for event in run.events(EventKind.INPUTS)}
    return [event for event in latest.values() if event.site.model in run.models]


@rule(
    "E013",
    severity=Severity.ERROR,
    reads=("mode.training",),
    applies=_no_inputs,
    silent_in=("gan", "rl"),
    explained_by=("L010",),
)
def evaluation_input_shift(
    run: Run,
    *,
    factor: float = 1.5,
    shift: float = 1.0,
    beyond: float = 8.0,
    features: float = 8,
    samples: float = 64,
) -> Iterator[Evidence]:
    """In evaluation a model is given inputs in another scale than those it was trained on.

    ## Why it matters
    A step of preprocessing that only one of two loaders takes makes a good model look bad: pixels
    divided by 255 in training and not in the test, columns standardized with `fit_transform` and
    the test set left as it was. Or, with scales of their own, good scores that no later input will
    have. The weights are those of the one scale.

    ## How it is measured
    Of the first floating-point tensor that a model is given, where a sample has the same shape in
    training and in evaluation, the mean and deviation of up to 256 features (pixels, columns) over
    some measured training batches and some passes without gradient, at least `samples` samples of
    both and `features` features that vary. Another scale shows in one of three ways. All features
    are those of training times one number, plus one: the ratios of the deviations agree (half of
    them within 15 %), the means of evaluation lie on a line over those of training (correlation of
    at least 0.97) whose slope is the ratio, and the ratio lies beyond `factor` or the means by
    `shift` deviations away. Or four of five features are of mean 0 and deviation 1 in the one and
    hardly one of five in the other, half of them beyond a factor of 2, and evaluation's do not lie
    within training's, as those of one of several sources would. Or half of the deviations
    lie beyond a factor of `beyond`. Other data, noise, masks and crops do none of these. Of each
    model the last comparison counts.

    ## How to fix
    Give both loaders one preprocessing, with the numbers of the training set:
    `scaler.fit(train)`, then `scaler.transform` of both; one `Normalize` in both transforms.

    ## False alarms
    An evaluation on data that were scaled on purpose (contrast, loudness) to see what it takes.
    What a generator or a policy is given is its own affair: GANs are left out, and reinforcement
    learning if it is declared.

    ## References
    CS231n notes, neural-networks-2, "common pitfall": the mean is computed on the training data and
    subtracted from all splits. scikit-learn documentation, "Common pitfalls", 10.1, "inconsistent
    preprocessing". Breck et al., "Data validation for machine learning" (MLSys 2019), on skew
    between training and serving.
    """
    for event in _latest(run):
        enough = min(_number(event, "trained"), _number(event, "evaluated")) >= samples
        if enough and _number(event, "features") >= features:
            if _is_rescaled(event, factor, shift):
                yield _as_a_whole(run, event)
            elif _is_of_each(event, beyond):
                yield _each(run, event)


def _number(event: Event, name: str) -> float:
    value = event.detail.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


_EVEN = math.log(1.15)
"""Between the quartiles of the logarithms of ratios that are one number."""


def _is_rescaled(event: Event, factor: float, shift: float) -> bool:
    """Whether evaluation's features are training's times one number, plus one."""
    ratio, slope = _number(event, "ratio"), _number(event, "slope")
    if min(ratio, slope) <= 0 or _number(event, "correlation") < 0.97:
        return False
    one = _number(event, "spread") <= _EVEN and abs(math.log(slope / ratio)) <= _EVEN
    other = max(ratio, 1 / ratio) >= factor or _number(event, "shift") >= shift
    return one and other


def _is_of_each(event: Event, beyond: float) -> bool:
    """Whether features are standardized in one of both only, or of quite another size."""
    ratio = max(_number(event, "ratio"), 1e-12)
    sides = sorted((_number(event, "standard"), _number(event, "standard_evaluated")))
    one_side = sides[0] <= 0.2 and sides[1] >= 0.8 and _number(event, "far") >= 0.5
    # One of several sources that training mixes is narrower, and may be standard by itself.
    part = ratio < 1 and _number(event, "shift") < 1 and _number(event, "standard") <= 0.2
    return (one_side and not part) or max(ratio, 1 / ratio) >= beyond


def _as_a_whole(run: Run, event: Event) -> Evidence:
    ratio = _number(event, "ratio")
    message = say(
        "in evaluation {model} is given inputs of {ratio:.3g} times the deviation of those in "
        "training, at all {features:.0f} features alike, and means {shift:.2g} deviations away "
        "(correlation of the means {correlation:.3f})",
        model=event.site.model,
        ratio=ratio,
        features=_number(event, "features"),
        shift=_number(event, "shift"),
        correlation=_number(event, "correlation"),
    )
    cause = say("They are the same features, scaled otherwise.")
    names = ("ratio", "slope", "correlation", "shift", "features")
    return _evidence(run, event, message, cause, names)


def _each(run: Run, event: Event) -> Evidence:
    ours, theirs = _number(event, "standard"), _number(event, "standard_evaluated")
    message = say(
        "in evaluation {model} is given inputs of {ratio:.3g} times the deviation of those in "
        "training (the median of {features:.0f} features, {far:.0%} of them beyond a factor of 2); "
        "{ours:.0%} of the features are of mean 0 and deviation 1 in training, and {theirs:.0%} in "
        "evaluation",
        model=event.site.model,
        ratio=_number(event, "ratio"),
        features=_number(event, "features"),
        far=_number(event, "far"),
        ours=ours,
        theirs=theirs,
    )
    cause = (
        say("Inputs are standardized in training, and not in evaluation.")
        if ours >= 0.8 > theirs
        else say("Inputs are standardized in evaluation, and not in training.")
        if theirs >= 0.8 > ours
        else say("A feature is in other units in evaluation than in training.")
    )
    names = ("ratio", "far", "standard", "standard_evaluated", "features")
    return _evidence(run, event, message, cause, names)


def _evidence(
    run: Run, event: Event, message: Message, cause: Message, names: tuple[str, ...]
) -> Evidence:
    return Evidence(
        site=Site(event.site.model),
        step=min(run.step, event.step),
        message=message,
        numbers={name: _number(event, name) for name in names},
        cause=cause,
        fix=say(
            "x = (x - train_mean) / train_std  # the same lines, with the training set's numbers, "
            "in training and in evaluation"
        ),
        excluded=(say("noise, masks and other data, which change no scale"),),
    )
