"""L011: the loss is a sum over the batch, or over batches, with the learning rate of a mean."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.loss.accumulated import Summed, summed
from traindx.rules.probed import STEP
from traindx.rules.rule import rule
from traindx.run import Run


@rule("L011", severity=Severity.WARNING, reads=("probe.loss_slope", "backwards"), lasting=True)
def reduction_or_scale(
    run: Run,
    *,
    slope: float = 0.9,
    step: float = 0.1,
    passes: float = 8,
    moved: float = 0.03,
    far: float = 0.3,
) -> Iterator[Evidence]:
    """The loss is a sum over the batch or over batches, and plain gradient descent goes too far.

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

    In training, gradients of several batches that are accumulated are a sum, too, unless each loss
    is divided by their number. Reported are steps of `torch.optim.SGD` with at least `passes`
    backward passes, of losses that are made by a mean and by nothing after it, if one of the first
    three moves the weights (median over the matrices) by more than the part `moved` of their size,
    and would not if the sum were divided; over `far` it is an error.

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
        first = run.at("probe.first_step", series.site)
        if first is not None and series.last >= slope and first.last > step:
            yield _of_batch(series.site, series.last, first.last, step)
    for one in summed(run, passes):
        if one.moved / one.passes <= moved < one.moved:
            yield _of_batches(run, one, moved, Severity.ERROR if one.moved > far else None)


def _of_batch(site: Site, slope: float, moved: float, step: float) -> Evidence:
    return Evidence(
        site=site,
        step=STEP,
        message=say(
            "the loss of {model} is a sum over the batch (it grows with the batch's size to the "
            "power of {slope:.2f}), and the first step of SGD would move the weights by "
            "{moved:.2g} of their norm (threshold {step:g})",
            model=site.model,
            slope=slope,
            moved=moved,
            step=step,
        ),
        numbers={"slope": slope, "first_step": moved},
        cause=say("The loss is summed, and the learning rate is that of a mean."),
        fix=say('reduction="mean"  # or loss.mean(); or the learning rate over the terms'),
        excluded=(say("penalties and other terms of the loss"),),
    )


def _of_batches(run: Run, one: Summed, least: float, severity: Severity | None) -> Evidence:
    return Evidence(
        site=Site(one.model),
        step=run.step,
        message=say(
            "each step of {model} is taken on the sum of {passes:.0f} losses, which nothing "
            "divides, and the first ones move its weights by {moved:.2g} of their size (threshold "
            "{least:g}); divided it would be {divided:.2g}",
            model=one.model,
            passes=one.passes,
            moved=one.moved,
            least=least,
            divided=one.moved / one.passes,
        ),
        numbers={"passes": one.passes, "moved": one.moved},
        cause=say("Accumulated gradients are summed, and the learning rate is that of a mean."),
        fix=say("(loss / {passes:.0f}).backward()", passes=one.passes),
        excluded=(say("optimizers that normalize their steps"), say("losses that are scaled")),
        severity=severity,
    )
