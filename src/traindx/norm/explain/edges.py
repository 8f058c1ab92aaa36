"""Batches of one element, empty ones, masks, and what rounding makes of the same formula."""

from __future__ import annotations

import numpy as np

from traindx.facts import Json
from traindx.messages import Message, say
from traindx.norm.choices import Accumulation, Cast, EmptyBatch, OneSample, Passes
from traindx.norm.explain.difference import Given, Reach, Said, explains
from traindx.norm.spec import NormSpec

FLOAT32 = float(np.finfo(np.float32).eps)
_RATIOS = (10.0, 1e3, 1e4)
"""|mean| over standard deviation that rounding is shown for where no checkpoint is given."""

_ONE = {
    OneSample.REFUSE: say("refuses it"),
    OneSample.REFUSE_LONE: say("refuses it in a batch of one sample"),
    OneSample.COMPUTE: say("returns the bias, and a running variance moves toward 0"),
    OneSample.IDENTITY: say("returns the input, without weight and bias"),
}
_EMPTY = {
    EmptyBatch.REFUSE: say("refuses it"),
    EmptyBatch.KEEP: say("leaves its running statistics as they are"),
    EmptyBatch.KEEP_AND_COUNT: say("leaves its running statistics as they are, but counts it"),
    EmptyBatch.POISON: say("makes its running statistics NaN, for good"),
}


def _which(first: bool) -> Message:
    return say("the first layer") if first else say("the second layer")


@explains("one_sample", Reach.EDGE)
def one_sample(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """One element behind a statistic."""
    return Said(
        say(
            "Where one element has a statistic to itself in training, the first {a}; the second "
            "{b}. Mind the last batch of an epoch.",
            a=_ONE[a.one_sample],
            b=_ONE[b.one_sample],
        )
    )


@explains("empty", Reach.EDGE)
def empty(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """A batch without elements."""
    return Said(
        say(
            "Of a batch without elements the first {a}; the second {b}.",
            a=_EMPTY[a.empty],
            b=_EMPTY[b.empty],
        )
    )


@explains("mask", Reach.EDGE)
def mask(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Whether a mask is taken."""
    if b.mask is None:
        return Said(say("The second takes no mask: padded places count in its statistics."))
    return Said(say("The second takes a mask; without one both count every element."))


@explains("mask.added", Reach.EDGE)
def mask_added(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """What is added to a masked count."""
    assert a.mask is not None
    assert b.mask is not None
    return Said(
        say(
            "With a mask they divide by the number of elements plus {a:g} and plus {b:g}: felt "
            "where next to nothing is left.",
            a=a.mask.added,
            b=b.mask.added,
        )
    )


@explains("accumulation", Reach.ROUNDING)
def accumulation(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """The type computed in."""
    which = _which(a.accumulation is Accumulation.INPUT)
    return Said(
        say(
            "For half inputs {which} computes in the half type itself: in float16 a square "
            "overflows beyond 255, and the output is 0 or NaN.",
            which=which,
        )
    )


@explains("cast", Reach.ROUNDING)
def cast(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """Where half inputs are rounded back."""
    which = _which(a.cast is Cast.BEFORE_AFFINE)
    return Said(
        say(
            "For half inputs {which} rounds before weight and bias act: its output is one "
            "rounding further off, 2^-8 of it in bfloat16 and 2^-11 in float16.",
            which=which,
        )
    )


@explains("passes", Reach.ROUNDING)
def passes(a: NormSpec, b: NormSpec, given: Given) -> Said:
    """How the variance is taken."""
    which = _which(a.passes is not Passes.TWO)
    if a.passes is not Passes.TWO and b.passes is not Passes.TWO:
        return Said(
            say(
                "Both take the variance in one pass; only one clips what rounding makes negative "
                "at 0, where the other has NaN."
            )
        )
    lines, data = _cancellation(given)
    effect = say(
        "By {which} the variance is taken in one pass, E[x^2] - E[x]^2, which loses (mean / "
        "standard deviation)^2 of its digits: in training, and wherever statistics are those of "
        "the input.",
        which=which,
    )
    return Said(effect, lines, data)


def _cancellation(given: Given) -> tuple[list[Message], dict[str, Json]]:
    if not given.tracked:
        lines = [
            say(
                "at a mean of {ratio:g} standard deviations float32 is off by about {one:.1g} in "
                "one pass and {two:.1g} in two",
                ratio=ratio,
                one=min(FLOAT32 * ratio**2, 1.0),
                two=FLOAT32 * ratio,
            )
            for ratio in _RATIOS
        ]
        return lines, {"mean_over_std": list(_RATIOS)}
    rows = [
        (name, np.abs(m) / np.sqrt(np.maximum(v, np.finfo(np.float32).tiny)))
        for name, m, v in given.tracked
    ]
    name, ratios = max(rows, key=lambda row: float(np.max(row[1])))
    c = int(np.argmax(ratios))
    ratio = float(ratios[c])
    line = say(
        "{layer}, channel {c}: its mean is {ratio:.3g} standard deviations, so float32 is off by "
        "about {one:.1g} in one pass and {two:.1g} in two",
        layer=name,
        c=c,
        ratio=ratio,
        one=min(FLOAT32 * ratio**2, 1.0),
        two=FLOAT32 * ratio,
    )
    return [line], {"layer": name, "channel": c, "mean_over_std": ratio}
