"""O005: a schedule that ends too soon, starts too high, never arrives, or is told backwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.optimization.never_arrived import never_arrived
from traindx.rules.optimization.no_warmup import no_warmup
from traindx.rules.optimization.told_backwards import told_backwards
from traindx.rules.rule import rule
from traindx.run import Run, Series

_STEPS = 100
"""Steps of a training after which its warmup should be over."""
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


@rule("O005", severity=Severity.WARNING, reads=("lr",), lasting=True)
def scheduler_misuse(
    run: Run,
    *,
    share: float = 0.01,
    times: float = 1.5,
    least: float = 40,
    loss: float = 0.02,
    stuck: float = 0.8,
    patience: float = 80,
    fallen: float = 0.9,
    arrived: float = 0.5,
) -> Iterator[Evidence]:
    """The learning rate is not what the training needs: gone or full too soon, or never there.

    ## Why it matters
    A schedule in epochs that is stepped at every batch, or one that was given the steps of one
    epoch for those of all, takes the learning rate to nothing within the first epoch. No error is
    raised, the loss stops falling, and the rest of the training waits. `ReduceLROnPlateau` in its
    default mode does the same if it is told an accuracy. And a transformer that normalizes after
    each sum is driven off by Adam's first steps if they are of the full rate. A warmup in steps
    that is stepped once an epoch, or never, leaves the rate at a small part of what was chosen for
    the whole training, and so does a factor that is itself a rate.

    ## How it is measured
    Gone too soon: by the rate of the optimizer's first group at the measured steps. It has stayed
    below `share` of its highest value for at least `least` steps, and for at least `times` as many
    as it took to get there, the fall taken to lie in the middle between two measured steps. Nothing
    is assumed of the steps to come. Silent where the loss has come down to `loss` of the first one.

    Told backwards: of the numbers that `ReduceLROnPlateau` was given (at least four different
    ones), the first is the best by its mode, it has cut the rate, and meanwhile the loss has fallen
    to `fallen` of its first values. In mode `min` the numbers are besides multiples of one over
    some number up to 10,000, as only a share of right answers is; in mode `max` they are not.

    Full too soon: at least four blocks of one class with attention call a normalization last and
    not first, the rate of Adam (or a relative) has never risen, its first step has moved the median
    weight of these blocks by at least a hundredth of its size, and after `patience` steps the mean
    of the last ten losses is still at `stuck` of that of the steps from 10 to 20.

    Never there: judged at the end of a training of at least 100 steps, by what schedulers leave in
    the optimizer's first group. Its rate was never above `arrived` of the one it was made with
    (`initial_lr`), or of the highest one planned (`max_lr`), never fell, and was the same in the
    first ten steps. Or its first rate is the square of the one it was made with, to a millionth,
    and it never rose.

    ## How to fix
    Call `scheduler.step()` where the schedule counts: after each epoch if its numbers are epochs
    (`StepLR`, `ExponentialLR`), after each `optimizer.step()` if they are steps (`OneCycleLR`), and
    give it the number of all of them. Give `ReduceLROnPlateau` a loss, or `mode="max"`. Let the
    rate rise over the first hundreds of steps, or normalize the input of each branch.

    ## False alarms
    A cosine that ends at zero is below a hundredth of its peak for a sixteenth of its steps, a
    one-cycle or polynomial schedule for a tenth; a warm restart begins anew. A rate that falls
    from its peak to nothing at once, as after a search for the rate or for a second phase, was set.
    An exponential decay that is meant to end at a ten-thousandth of the rate spends half of its
    steps there, not three fifths. A validation loss that rises from the first epoch on is no share
    of anything, unless it was rounded to a few digits. A post-norm network that learns without a
    warmup is let be. A training into which weights were loaded may go on late in its schedule, and
    an optimizer that was made with rate 1 may get its rates from `LambdaLR`: neither is looked at
    for a rate that never arrived.

    ## References
    PyTorch documentation, `torch.optim.lr_scheduler`, "How to adjust learning rate". Loshchilov and
    Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017). Smith, "A disciplined
    approach to neural network hyper-parameters" (2018), on one cycle. Xiong et al., "On layer
    normalization in the transformer architecture" (2020), on warmup.
    """
    for series in run.series("lr"):
        decay = _decay(series, share)
        if decay is None or decay.after < max(least, times * decay.before):
            continue
        if not _has_learned(run, series.site.fqn, loss):
            yield _evidence(series, decay, share)
    yield from told_backwards(run, fallen=fallen)
    yield from no_warmup(run, steps=patience, stuck=stuck)
    yield from never_arrived(run, part=arrived, steps=_STEPS)


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
