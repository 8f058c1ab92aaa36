"""O013: the learning rate lies far from those that lower the loss of the first batch."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.rules.probed import STEP, observation
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "O013",
    severity=Severity.INFO,
    reads=("probe.lr_low", "probe.lr_high"),
    source="probe",
    explained_by=("O001", "O002"),
)
def learning_rate_range(
    run: Run, *, under: float = 100.0, over: float = 30.0
) -> Iterator[Evidence]:
    """The learning rate lies far outside of those that lower the loss of the first batch.

    ## Why it matters
    A rate that is a hundred times too small learns nothing in the time there is, and one that is
    ten times too large throws the model away in its first steps. Which is which depends on model,
    optimizer and the scale of the loss, and a few seconds tell.

    ## How it is measured
    By preflight: eight runs of 4 steps each on one batch, from the same start and with the same
    random numbers, with the optimizer's own rates times 0.001, 0.01, ... 10,000. The interval
    begins at the least rate with a tenth of the best run's progress, and ends at the greatest with
    half of it whose loss never rises by more than a tenth. It is told if the rate is `under` times
    below, or `over` times above that interval. Of a schedule, the rate it starts from counts. What
    was tried is in the evidence, and the suggestion itself in `probe.lr_low` and `probe.lr_high`.

    ## How to fix
    Take a rate within the interval, rather its lower half where batches are small or differ much:
    one batch forgives more than many. Choose finally by several runs on a logarithmic scale.

    ## False alarms
    It is information only. Clipping between backward and step is not repeated, so a rate that
    needs it looks too large; a warm-up that sets the rate by hand looks too small. A model that is
    fine-tuned wants less than lowers the loss fastest.

    ## References
    Smith, "Cyclical learning rates for training neural networks" (WACV 2017), section 3.3, the
    range test. CS231n notes, "Neural Networks Part 3", on the search for hyperparameters.
    """
    for series in run.series("probe.lr"):
        site = series.site
        low, high = run.at("probe.lr_low", site), run.at("probe.lr_high", site)
        seen = observation(run, "learning-rate", site)
        if low is None or high is None or seen is None or not seen.detail.get("set"):
            continue
        rate = series.last
        if low.last / under <= rate <= high.last * over:
            continue
        yield Evidence(
            site=site,
            step=STEP,
            message=say(
                "the learning rate {rate:.2g} of {optimizer} lies outside of {low:.2g} to "
                "{high:.2g}, which lower the loss of one batch in {steps} steps",
                rate=rate,
                optimizer=seen.text("optimizer"),
                low=low.last,
                high=high.last,
                steps=round(seen.number("steps")),
            ),
            numbers={"lr": rate, "low": low.last, "high": high.last},
            cause=say("It is too small to move the loss.")
            if rate < low.last
            else say("It is so large that the loss rises."),
            fix=say("lr={rate:.2g}", rate=(low.last * high.last) ** 0.5),
            excluded=(say("the schedule: the rate it starts from counts"),),
        )
