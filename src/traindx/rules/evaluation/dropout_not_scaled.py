"""E016: a dropout written by hand changes the mean."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("E016", severity=Severity.ERROR, reads=("probe.unexplained_mode_gap",), source="probe")
def dropout_not_scaled(run: Run) -> Iterator[Evidence]:
    """A dropout drops in training, and neither training nor evaluation makes up for it.

    ## Why it matters
    Of inputs x, dropout keeps the part 1 - p. The layer behind it learns from sums that are so much
    smaller, and in evaluation, where nothing is dropped, it is given sums that are 1 / (1 - p)
    times as large: twice for p = 0.5, in every such layer. The scores in evaluation are then those
    of a model that was never trained.

    ## How it is measured
    By preflight, on one batch: masks that the model draws in training, of zeros and one other
    number, and multiplies with what it has computed are replaced by their mean, and once more by
    ones. With means, training must agree with evaluation, which it does if the mask is divided by
    1 - p in training, or the input multiplied by it in evaluation. If it does not, and does with
    ones within rounding, what was dropped is not made up for. Masks of fewer than 256 elements,
    whose mean is not well known, are told as information.

    ## How to fix
    `F.dropout(x, p, training=self.training)`, which divides by 1 - p; by hand,
    `x * mask / (1 - p)`.

    ## False alarms
    A mask over what is put in (a denoising autoencoder, masked pixels) is left alone: it is no
    dropout. Blocks that are dropped without scaling on purpose
    (`drop_path(..., scale_by_keep=False)`) are reported; few samples make that information.

    ## References
    Srivastava et al., "Dropout" (JMLR 2014), sections 4 and 10: weights are scaled by the
    probability of keeping, or activations by its inverse. CS231n notes, neural-networks-2,
    "inverted dropout".
    """
    for seen in observations(run, "mode-gap"):
        if seen.detail.get("unscaled"):
            yield _evidence(seen)


def _evidence(seen: Observation) -> Evidence:
    gap, dropped = seen.number("gap"), seen.number("dropped")
    place = seen.site.fqn or seen.site.model
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "`{place}` ({kind}) drops {dropped:.0%} in training and does not make up for it, so "
            "that the mean of the output lies {gap:.2g} of its RMS from that in evaluation",
            place=place,
            kind=seen.text("kind"),
            dropped=dropped,
            gap=gap,
        ),
        numbers={"gap": gap, "dropped": dropped, "tolerance": seen.number("tolerance")},
        cause=say("The mask is not divided by the part that it keeps."),
        fix=say("F.dropout(x, p, training=self.training)  # or by hand: x * mask / (1 - p)"),
        excluded=(
            say("a scale in evaluation instead"),
            say("masks over what is put in"),
        ),
        severity=Severity.ERROR if seen.detail.get("sure") else Severity.INFO,
    )
