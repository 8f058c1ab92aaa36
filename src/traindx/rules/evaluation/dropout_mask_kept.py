"""E018: a dropout drops the same units at every step."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.probed import STEP, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("E018", severity=Severity.ERROR, reads=("probe.unexplained_mode_gap",), source="probe")
def dropout_mask_kept(run: Run, *, share: float = 0.02) -> Iterator[Evidence]:
    """A dropout drops the same units in every sample at every step, and none of them in evaluation.

    ## Why it matters
    Units that are always dropped never train. In evaluation they are there, with the weights that
    they were initialized with, and add their noise to what the others have learned. The others,
    which are never dropped, are not regularized at all.

    ## How it is measured
    By preflight, on one batch: where training and evaluation part though no random number is drawn
    (`mode-gap`), at least a share `share` of the module's units is exactly 0 in training in every
    sample in which it is not 0 in evaluation, and all others are in training what they are in
    evaluation, times one number.

    ## How to fix
    Draw a new mask in every forward pass: `F.dropout(x, p, training=self.training)`.

    ## False alarms
    A mask of pruned units that is put on in training only is reported; it belongs in evaluation,
    too. A mask that changes from step to step without being drawn (from a list, say) looks the same
    on one batch.

    ## References
    Srivastava et al., "Dropout" (JMLR 2014), section 4: the mask is drawn for each case. PyTorch
    documentation, `torch.nn.Dropout`: "zeroed out independently on every forward call".
    """
    for seen in observations(run, "mode-gap"):
        dropped, place = seen.number("mask"), seen.site.fqn or seen.site.model
        if dropped >= share:
            yield Evidence(
                site=seen.site,
                step=STEP,
                message=say(
                    "`{place}` ({kind}) sets the same {dropped:.0%} of its units to 0 in training, "
                    "in every sample and whatever the random numbers, and none of them in "
                    "evaluation",
                    place=place,
                    kind=seen.text("kind"),
                    dropped=dropped,
                ),
                numbers={"dropped": dropped, "gap": seen.number("gap")},
                cause=say("Its mask is made once and kept."),
                fix=say("F.dropout(x, p, training=self.training)  # draws a mask in every call"),
                excluded=(say("masks that are drawn, which are at their mean"),),
            )
