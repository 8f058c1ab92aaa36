"""E015: training and evaluation differ by more than dropout and batch statistics."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("E015", severity=Severity.WARNING, reads=("probe.unexplained_mode_gap",), source="probe")
def mode_gap(run: Run) -> Iterator[Evidence]:
    """In training the model computes something else than in evaluation, and it is not dropout.

    ## Why it matters
    What is trained should be what is evaluated. Dropout draws around the same mean, and batch
    normalization exchanges one estimate of a mean and deviation for another. Whatever else depends
    on `self.training` makes two models of one: layers are trained on inputs that they never meet
    in evaluation.

    ## How it is measured
    By preflight, on one batch: in training with every dropout at what it does on average, with
    batch normalization and whatever else keeps running statistics in evaluation mode; and all of it
    in evaluation. The two outputs must agree within rounding (1e-4 of their RMS in float32, 16
    units in the last place of shorter types). If they do not, the place is the first module, from
    the inside, that is given the same in both and makes another output. Where modules with
    parameters come after it, it is a warning; at the model's end it is information, since answers
    are often given in another form in evaluation.

    ## How to fix
    Look in the named module for `if self.training:`, and let both ways compute the same on average.

    ## False alarms
    A softmax, a decoding of boxes or a clamp in evaluation only is meant, and at the end no more
    than information. A model that draws in training what is no dropout (a variational autoencoder),
    and one that returns losses in training, is not judged.

    ## References
    PyTorch documentation, `torch.nn.Module.eval`. Srivastava et al., "Dropout" (2014), section 10,
    on why evaluation must equal training on average.
    """
    for seen in observations(run, "mode-gap"):
        if not (seen.detail.get("unscaled") or seen.detail.get("mask")):
            yield _evidence(seen)


def _evidence(seen: Observation) -> Evidence:
    gap, place = seen.number("gap"), seen.site.fqn or seen.site.model
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "without noise the output in training lies {gap:.2g} of its RMS from that in "
            "evaluation; it begins in `{place}` ({kind})",
            gap=gap,
            place=place,
            kind=seen.text("kind"),
        ),
        numbers={"gap": gap, "tolerance": seen.number("tolerance")},
        cause=say("It computes something else if `self.training` is set."),
        fix=say(
            "Look in `{place}` for `self.training`, and let both ways compute the same on average.",
            place=place,
        ),
        excluded=(
            say("dropout, which is at its mean"),
            say("batch normalization, which uses its running statistics in both"),
        ),
        severity=Severity.WARNING if seen.detail.get("inner") else Severity.INFO,
    )
