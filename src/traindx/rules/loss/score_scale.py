"""L020: similarities are so flat, or so steep, that the loss can hardly tell answers apart."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("L020", severity=Severity.WARNING, reads=("probe.least_loss",), source="probe")
def score_scale(run: Run, *, flattest: float = 0.8, steepest: float = 500) -> Iterator[Evidence]:
    """The scores that the loss compares can never differ enough, or always differ too much.

    ## Why it matters
    Similarities of vectors of length 1 lie between -1 and 1. A softmax over a hundred of them is
    nearly even, whatever is learned: the loss stays close to that of a guess, and its gradient
    says nearly the same of every answer. So they are divided by a temperature of, say, 0.1.
    Multiplied by it they are flatter still. Divided by a thousandth, only the nearest counts.

    ## How it is measured
    By preflight, exactly, in one pass: products of vectors that were normalized, along the axis
    that is summed over, are at most the product of their lengths; constants multiply that. The
    least cross-entropy of C scores between -s and s is ln(1 + (C - 1) exp(-2 s)). If that is more
    than `flattest` of ln C, what a guess gets, or s is over `steepest`, it is reported. Scores that
    are multiplied by something trained have no bound, and are passed over.

    ## How to fix
    `scores = a @ b.T / 0.1`: divide by the temperature, and choose it so that the best answer can
    be likely: 1 / temperature of at least ln C.

    ## False alarms
    Thousands of negatives at a temperature of 1 are as flat. That the loss cannot fall far does not
    keep an optimizer that ignores the size of gradients from learning something.

    ## References
    Wu et al., "Unsupervised feature learning via non-parametric instance discrimination" (2018),
    section 3.1. Wang et al., "NormFace" (2017), proposition 2, gives the bound. Wang & Liu,
    "Understanding the behaviour of contrastive loss" (2021), on temperatures.
    """
    for seen in observations(run, "score-scale"):
        least, chance = seen.number("least"), seen.number("chance")
        if least > flattest * chance:
            yield _flat(seen, least, chance)
        elif seen.number("steepest") > steepest:
            yield _steep(seen, steepest)


def _flat(seen: Observation, least: float, chance: float) -> Evidence:
    bound = seen.number("bound")
    return _evidence(
        seen,
        say(
            "the {choices:.0f} scores that the loss compares lie between -{bound:.3g} and "
            "{bound:.3g} whatever is learned, so that it cannot fall below {least:.3g}; a guess "
            "gets {chance:.3g}",
            choices=seen.number("choices"),
            bound=bound,
            least=least,
            chance=chance,
        ),
        {"bound": bound, "least_loss": least, "chance": chance},
        say("Scores are multiplied by a temperature, or have none."),
    )


def _steep(seen: Observation, steepest: float) -> Evidence:
    bound = seen.number("steepest")
    return _evidence(
        seen,
        say(
            "the scores that the loss compares lie between -{bound:.3g} and {bound:.3g} (threshold "
            "{steepest:g}), so that only the greatest counts",
            bound=bound,
            steepest=steepest,
        ),
        {"bound": bound},
        say("The temperature is far too low."),
    )


def _evidence(
    seen: Observation, message: Message, numbers: dict[str, float], cause: Message
) -> Evidence:
    return Evidence(
        site=seen.site,
        step=STEP,
        message=message,
        numbers=numbers,
        cause=cause,
        fix=say("scores = a @ b.T / 0.1  # divide by the temperature"),
        excluded=(say("a scale that is trained"), say("vectors whose length is free")),
    )
