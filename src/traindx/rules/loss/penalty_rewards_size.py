"""L014: the penalty on the parameters falls as they grow."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.probed import STEP
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "L014",
    severity=Severity.ERROR,
    reads=("probe.penalty_slope",),
    source="probe",
)
def penalty_rewards_size(run: Run) -> Iterator[Evidence]:
    """The loss has a term of the parameters alone, and it falls as they grow.

    ## Why it matters
    A penalty (weight decay, L1, elastic net) is there to keep parameters small: more of it must
    raise the loss. One with the wrong sign rewards size. Training then lowers the loss without any
    limit by making the parameters larger, whatever the data say, until nothing is finite.

    ## How it is measured
    Exactly, by preflight: the loss of the same output of the model is computed twice, the second
    time with all trainable parameters doubled. Only terms that are of the parameters alone can
    change; it is a fault if they fall.

    ## How to fix
    Look at the sign before the penalty: `loss = loss + strength * penalty`, with a strength that is
    not negative and a penalty that grows with the parameters, such as the sum of their squares.

    ## False alarms
    Terms that are meant to fall with size exist, such as the negative entropy of a learned
    distribution; say so with `ignore = ["L014"]`.

    ## References
    CS231n notes, "Neural Networks Part 3: Learning and Evaluation", "Before learning: sanity
    checks": increasing the regularization strength should increase the loss.
    """
    for series in run.series("probe.penalty_slope"):
        if series.last < 0:
            model = series.site.model
            yield Evidence(
                site=series.site,
                step=STEP,
                message=say(
                    "doubling the parameters of {model} lowers the loss by {fall:.4g} although its "
                    "output is the same",
                    model=model,
                    fall=-series.last,
                ),
                numbers={"change": series.last},
                cause=say("A penalty on the parameters has the wrong sign."),
                fix=say("loss = data_loss + strength * penalty  # a strength of 0 or more"),
                excluded=(say("the data term, which is of the same output"),),
            )
