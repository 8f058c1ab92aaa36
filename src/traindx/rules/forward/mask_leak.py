"""F011: the future, or padding, reaches what a sequence model makes of a position."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "F011",
    severity=Severity.ERROR,
    reads=("probe.future_leak", "probe.padding_leak"),
    source="probe",
)
def mask_leak(run: Run) -> Iterator[Evidence]:
    """A model that predicts the next element sees it, or padding reaches real positions.

    ## Why it matters
    A model trained to predict the next element, to which a later one leaks, learns to copy it: the
    loss falls close to zero, evaluation looks as good, and nothing can be generated. Padding that
    reaches real positions makes the answer for a sequence depend on how long the longest of its
    batch is.

    ## How it is measured
    By preflight, exactly. Future: only where the loss's target is the input shifted by one (at 99 %
    of the positions that count). The second half of every sequence is replaced by other elements
    that occur in the batch; in evaluation, outputs at earlier positions whose target counts must
    stay the same within rounding (1e-4 of the output's RMS in float32, 16 units in the last place
    of shorter types). Padding: only where the model is given a mask, of the sequence or with more
    positions before it that are alike in all samples (one for the whole of a sample); what it masks
    (one constant at the beginning or end of the sequences) is replaced, and outputs at real
    positions, or for the sequence as a whole, must stay. The place is the first module, from the
    inside, that was given the same at those positions and made another output.

    ## How to fix
    Future: give attention `is_causal=True` or an upper triangular mask with `diagonal=1`, pad a
    convolution on the left only, and use a unidirectional RNN. Padding: hand the mask on
    (`key_padding_mask`, True where padding is), pool over real positions only, pack sequences for
    an RNN that reads backwards.

    ## False alarms
    Without a target that is the shifted input nothing is said of the future, so that encoders and
    masked language models are left alone; positions that the loss ignores (a prefix read both
    ways) do not count. Padding is judged only where the model is told of it. Statistics over time
    within a sequence, as of instance normalization, are real leaks of the future.

    ## References
    Vaswani et al., "Attention is all you need" (2017), section 3.2.3, on masking subsequent
    positions. Karpathy, "A Recipe for Training Neural Networks" (2019), on charting dependencies.
    """
    for seen in observations(run, "sequence-leaks"):
        yield _future(seen) if seen.text("what") == "future" else _padding(seen)


def _future(seen: Observation) -> Evidence:
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "outputs before position {half} of {steps} move by {leak:.2g} of their RMS when only "
            "inputs from there on are changed, though the target is the next input; it begins in "
            "`{place}` ({kind})",
            half=round(seen.number("changed_from")),
            steps=round(seen.number("steps")),
            leak=seen.number("leak"),
            place=seen.site.fqn or seen.site.model,
            kind=seen.text("kind"),
        ),
        numbers={"leak": seen.number("leak"), "tolerance": seen.number("tolerance")},
        cause=say("The answer at a position is among what the model may look at there."),
        fix=say(
            "attention: F.scaled_dot_product_attention(q, k, v, is_causal=True), or attn_mask="
            "torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)\n"
            "convolution: F.pad(x, (kernel_size - 1, 0)) and padding=0\n"
            "RNN: bidirectional=False"
        ),
        excluded=(
            say("a target that is not the next input"),
            say("positions that the loss ignores"),
            say("random numbers: both runs draw the same"),
        ),
    )


def _padding(seen: Observation) -> Evidence:
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "outputs for real positions move by {leak:.2g} of their RMS when only what the mask "
            "calls padding is changed; it begins in `{place}` ({kind})",
            leak=seen.number("leak"),
            place=seen.site.fqn or seen.site.model,
            kind=seen.text("kind"),
        ),
        numbers={"leak": seen.number("leak"), "tolerance": seen.number("tolerance")},
        cause=say("The mask does not reach it, or it has another sense there."),
        fix=say(
            "Give `{place}` the mask, in its own sense: of `nn.MultiheadAttention`, "
            "key_padding_mask is True where padding is; pool with "
            "(x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).",
            place=seen.site.fqn or seen.site.model,
        ),
        excluded=(say("random numbers: both runs draw the same"),),
        severity=Severity.WARNING,
    )
