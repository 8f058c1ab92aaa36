"""E007: a sample's output depends on the other samples of its batch."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.rules.normalization.no_running_statistics import normalizes_by_batch
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "E007",
    severity=Severity.ERROR,
    reads=("probe.batch_mixing", "probe.batch_mixing_training"),
    source="probe",
)
def batch_mixing(run: Run) -> Iterator[Evidence]:
    """In evaluation, what the model makes of a sample depends on the other samples of the batch.

    ## Why it matters
    A prediction must be about its own sample. If it moves with whoever happens to share the batch,
    a score depends on the batch size and the order of the data, one request to a deployed model
    changes the answer to another, and what was measured in batches does not hold for samples one
    at a time. Behind it is usually an axis that was mistaken: a softmax or mean over axis 0, an
    attention or LSTM that takes the batch for time, a reshape that mixes samples.

    ## How it is measured
    By preflight, exactly: the model runs on the batch, and on the same batch with one half of its
    samples replaced by others, with the same random state, buffers and shapes; once the first half
    and once the second. Outputs of the other half must agree within rounding (1e-4 of their RMS in
    float32, 16 units in the last place of shorter types). The place is the first module, from the
    inside, that was given the same for the kept samples in both runs and made another output. In
    training the same is done with the modes as the script has them. If it disappears once batch
    normalization uses its running statistics, as it should, nothing is said; else it is told as
    information. A module that writes its running statistics in the pass is a batch normalization
    written by hand, and E010's to judge; a BatchNorm that keeps none is N020's.

    ## How to fix
    Look for the axis in the named module: `softmax(dim=-1)` and not `dim=0`; `batch_first=True` in
    `nn.MultiheadAttention`, `nn.LSTM` and `nn.TransformerEncoderLayer` that are given batch first;
    `x.flatten(1)` and not `x.flatten()`; `transpose` and not `reshape` to exchange axes.

    ## False alarms
    Outputs that compare the samples of a batch (a square of similarities) are passed over, and so
    are batches whose axis 0 may be time or the nodes of a graph: nothing is said of (steps, batch)
    unless a data loader or the target tells. A mixture of experts with a limited capacity really
    depends on the batch; so does a model that is meant to look at a set of samples at once. Ignore
    the rule there.

    ## References
    Ioffe & Szegedy, "Batch normalization" (ICML 2015), section 3.1: in inference the output must
    depend only on its own input. Karpathy, "A Recipe for Training Neural Networks" (2019), "use
    backprop to chart dependencies".
    """
    seen = list(observations(run, "batch-composition"))
    in_evaluation = {one.site.model for one in seen if one.text("mode") == "evaluation"}
    for one in (one for one in seen if not _is_of_another_rule(one)):
        if one.text("mode") == "evaluation":
            yield _evidence(one, say("in evaluation"), None)
        elif one.site.model not in in_evaluation:
            yield _evidence(one, say("in training"), Severity.INFO)


def _is_of_another_rule(seen: Observation) -> bool:
    return bool(seen.names("written")) or normalizes_by_batch(seen)


def _evidence(seen: Observation, when: Message, severity: Severity | None) -> Evidence:
    kind, mixing = seen.text("kind"), seen.number("mixing")
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "{when} the output for a sample moves by {mixing:.2g} of its RMS when only the other "
            "samples of the batch are changed (rounding: at most {tolerance:.1g}); it begins in "
            "`{place}` ({kind})",
            when=when,
            mixing=mixing,
            tolerance=seen.number("tolerance"),
            place=seen.site.fqn or seen.site.model,
            kind=kind,
        ),
        numbers={"mixing": mixing, "tolerance": seen.number("tolerance")},
        cause=say("It works across axis 0, where the samples are."),
        fix=_fix(kind),
        excluded=(
            say("random numbers: both runs draw the same"),
            say("outputs that compare samples with each other"),
        ),
        severity=severity,
    )


def _fix(kind: str) -> Message:
    if kind in ("MultiheadAttention", "LSTM", "GRU", "RNN") or kind.startswith("Transformer"):
        return say("{kind}(..., batch_first=True)  # it is given the batch first", kind=kind)
    return say(
        "Look there for `dim=0`, for a `view` or `reshape` that exchanges axes, and for a mean, "
        "softmax or norm without `dim`: samples lie along axis 0."
    )
