"""S011: a bias right before a normalization that subtracts it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from traindx.findings import Evidence, Severity, first_layers
from traindx.messages import counted, say
from traindx.rules.probed import STEP, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("S011", severity=Severity.INFO, reads=("probe.undone_biases",), source="probe")
def undone_bias(run: Run) -> Iterator[Evidence]:
    """The bias of a layer is subtracted again by the normalization that follows.

    ## Why it matters
    BatchNorm and InstanceNorm subtract the mean of each channel, and with it any constant that was
    added before. The bias has no effect and no gradient but rounding; it costs memory and time, is
    moved at random by optimizers that divide by the size of the gradient, and misleads who reads
    the weights. Nothing learns worse for it.

    ## How it is measured
    The very output of a linear layer or convolution with a bias is given to a BatchNorm in
    training, an InstanceNorm, or a GroupNorm of one channel a group. After one backward pass, the
    RMS of the bias's gradient is below 1e-4 of that of the weight's. One finding per model.

    ## How to fix
    Make the layer with `bias=False`. The normalization's own bias does what it was meant to do.

    ## False alarms
    If the output is also used elsewhere, the bias has a gradient, and nothing is reported. In
    evaluation or when fine-tuned with frozen statistics, BatchNorm does not subtract the mean of
    the batch, and the bias counts.

    ## References
    Ioffe & Szegedy, "Batch normalization: accelerating deep network training by reducing internal
    covariate shift" (2015), section 3.2.
    """
    for seen in observations(run, "undone-biases"):
        found = seen.detail.get("layers")
        layers = cast("list[str]", found) if isinstance(found, list) else []
        count = int(seen.number("count"))
        yield Evidence(
            site=seen.site,
            step=STEP,
            message=say(
                "the bias of {layers} is subtracted again by the normalization that follows: "
                "first `{module}`, by `{norm}`",
                layers=counted(count, "{n} layer", "{n} layers"),
                module=seen.site.fqn,
                norm=seen.text("norm"),
            ),
            numbers={"layers": count, "elements": seen.number("elements")},
            cause=say("The mean that is subtracted contains the bias."),
            fix=say("Make the layer with `bias=False`."),
            layers=first_layers(layers),
        )
