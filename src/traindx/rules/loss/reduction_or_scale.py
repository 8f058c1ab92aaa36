"""L011: the loss is a sum over the batch, with a learning rate that is made for a mean."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.probed import STEP
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "L011",
    severity=Severity.WARNING,
    reads=("probe.loss_slope",),
    source="probe",
)
def reduction_or_scale(run: Run, *, slope: float = 0.9, step: float = 0.1) -> Iterator[Evidence]:
    """The loss is a sum over the batch, and the first step of plain gradient descent is too long.

    ## Why it matters
    The gradient of a sum grows with the batch, and with every pixel that is summed over: the
    learning rate of a mean is then hundreds of times too large. The loss explodes, or, where
    gradients are clipped, each step is as long as the limit whatever they say. And each change of
    the batch size is a change of the learning rate.

    ## How it is measured
    By preflight, in evaluation mode, on one batch and on its halves. The slope is the logarithm, to
    base 2, of the whole's loss over the mean of the halves': 0 of a mean and 1 of a sum, within
    0.1 %; of others nothing is said. Reported is a slope of at least `slope` if the optimizer is
    `torch.optim.SGD` and its first step, without momentum, would move all weights together by more
    than the fraction `step` of their norm.

    ## How to fix
    `reduction="mean"`; of a loss that is written by hand, `.mean()` for `.sum()`. If the sum is
    meant, divide the learning rate by the number of terms.

    ## False alarms
    Optimizers that normalize their steps (Adam and its kin) do not feel the scale of the loss, and
    are not looked at. A sum with a learning rate made for it moves the weights as little as a mean
    does, and is not reported. A sum that is divided by a constant is still a sum.

    ## References
    Goyal et al., "Accurate, large minibatch SGD" (2017), section 2, on how the learning rate goes
    with the batch. PyTorch documentation, `torch.nn.MSELoss`, on `reduction`.
    """
    for series in run.series("probe.loss_slope"):
        site = series.site
        moved = run.at("probe.first_step", site)
        if moved is None or series.last < slope or not moved.last > step:
            continue
        yield Evidence(
            site=site,
            step=STEP,
            message=say(
                "the loss of {model} is a sum over the batch (it grows with the batch's size to "
                "the power of {slope:.2f}), and the first step of SGD would move the weights by "
                "{moved:.2g} of their norm (threshold {step:g})",
                model=site.model,
                slope=series.last,
                moved=moved.last,
                step=step,
            ),
            numbers={"slope": series.last, "first_step": moved.last},
            cause=say("The loss is summed, and the learning rate is that of a mean."),
            fix=say('reduction="mean"  # or loss.mean(); or the learning rate over the terms'),
            excluded=(say("penalties and other terms of the loss"),),
        )
