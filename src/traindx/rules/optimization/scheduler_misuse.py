"""O005: a learning rate that is gone long before the training is over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.rule import rule
from traindx.run import Run, Series

_AT_PEAK = 0.9
"""Share of its peak from which a rate that falls to next to nothing is set, not scheduled."""


@dataclass(frozen=True, slots=True)
class _Decay:
    """How a learning rate fell.

    Attributes:
        peak: The highest rate.
        before: Steps until it was next to nothing.
        after: Steps since then.
    """

    peak: float
    before: int
    after: int


@rule("O005", severity=Severity.WARNING, reads=("lr",))
def scheduler_misuse(
    run: Run, *, share: float = 0.01, times: float = 1.5, least: float = 40, loss: float = 0.02
) -> Iterator[Evidence]:
    """The learning rate is next to nothing for most of the training.

    ## Why it matters
    A schedule in epochs that is stepped at every batch, or one that was given the steps of one
    epoch for those of all, takes the learning rate to nothing within the first epoch. No error is
    raised, the loss stops falling, and the rest of the training waits.

    ## How it is measured
    By the rate of the optimizer's first group at the measured steps. It has stayed below `share` of
    its highest value for at least `least` steps, and for at least `times` as many as it took to get
    there, the fall taken to lie in the middle between two measured steps. Nothing is assumed of the
    steps to come. Silent where the loss has come down to `loss` of the first one.

    ## How to fix
    Call `scheduler.step()` where the schedule counts: after each epoch if its numbers are epochs
    (`StepLR`, `ExponentialLR`), after each `optimizer.step()` if they are steps (`OneCycleLR`), and
    give it the number of all of them.

    ## False alarms
    A cosine that ends at zero is below a hundredth of its peak for a sixteenth of its steps, a
    one-cycle or polynomial schedule for a tenth; a warm restart begins anew. A rate that falls
    from its peak to nothing at once, as after a search for the rate or for a second phase, was set.
    An exponential decay that is meant to end at a ten-thousandth of the rate spends half of its
    steps there, not three fifths.

    ## References
    PyTorch documentation, `torch.optim.lr_scheduler`, "How to adjust learning rate". Loshchilov and
    Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017). Smith, "A disciplined
    approach to neural network hyper-parameters" (2018), on one cycle.
    """
    for series in run.series("lr"):
        decay = _decay(series, share)
        if decay is None or decay.after < max(least, times * decay.before):
            continue
        if not _has_learned(run, series.site.fqn, loss):
            yield _evidence(series, decay, share)


def _decay(series: Series, share: float) -> _Decay | None:
    """How a rate fell below a share of its peak and stayed there; None if it did not."""
    if series.unchanged_since == series.first_step:  # constant: the most common of all
        return None
    rates, steps = series.values, series.steps
    peak = float(rates.max())
    if not (peak > 0 and series.last < share * peak):
        return None
    above = (rates >= share * peak).nonzero()[0]
    last = int(above[-1])
    if rates[last] >= _AT_PEAK * peak:
        return None
    since = (int(steps[last]) + int(steps[last + 1]) + 1) // 2
    return _Decay(peak, since - series.first_step, series.step - since + 1)


def _has_learned(run: Run, optimizer: str, loss: float) -> bool:
    held = (
        model.name
        for model in run.models.values()
        if any(optimizer in param.optimizers for param in model.params)
    )
    return any(run.loss_fraction(model) <= loss for model in held)


def _evidence(series: Series, decay: _Decay, share: float) -> Evidence:
    return Evidence(
        site=series.site,
        step=series.step,
        message=say(
            "the learning rate of {optimizer} fell from {peak:.3g} to less than {share:.2%} of "
            "that in {before} steps, and has been there for {after} steps since; it is {last:.2g}",
            optimizer=series.site.fqn,
            peak=decay.peak,
            share=share,
            before=decay.before,
            after=decay.after,
            last=series.last,
        ),
        numbers={
            "peak": decay.peak,
            "lr": series.last,
            "steps_before": decay.before,
            "steps_after": decay.after,
        },
        cause=say(
            "The scheduler is stepped at each batch though it counts epochs, or was given too few "
            "steps."
        ),
        fix=say("Call `scheduler.step()` once per epoch, or give it the number of all batches."),
        excluded=(
            say("a decay to zero at the end"),
            say("warm restarts"),
            say("a rate that was set by hand"),
        ),
        series=("lr", "loss"),
    )
