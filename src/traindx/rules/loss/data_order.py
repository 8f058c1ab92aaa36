"""L018: batches are not drawn at random."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Point
from traindx.rules.probed import STEP
from traindx.rules.rule import rule
from traindx.run import Run, Series

_FED = 0.9
"""Of the steps, those that the passes must have given a batch for: else others are trained on."""


@rule(
    "L018", severity=Severity.ERROR, reads=("data.repeats", "probe.neighbours_alike"), lasting=True
)
def data_order(
    run: Run, *, alike: float = 0.8, chance: float = 0.6, passes: float = 8
) -> Iterator[Evidence]:
    """The data lie sorted by class and are read in that order, or only their beginning is read.

    ## Why it matters
    Stochastic gradient descent follows each batch as if it were a sample of all data. A batch of
    one class teaches that everything is of this class, the next one teaches it to forget that:
    the loss of a batch looks fine, and what is left is the last class. BatchNorm takes the
    statistics of one class for those of all. Where each step takes the first batch again, the loss
    falls as it should, and nothing else is ever seen.

    ## How it is measured
    In training, of each `DataLoader` that gives at least nine batches in ten steps while gradients
    are enabled: the passes over its data, how far the longest came, and a hash of some elements of
    each pass's first batch. Reported is that at least `passes` passes all began with the same
    batch, and none came to the end of the data.

    By preflight, where the training's `DataLoader` reads in order (no `shuffle=True`, no sampler),
    or, without a `DataLoader`, the batch is the next rows of two tensors of the program. The labels
    of samples half a batch apart are compared at 64 places all over the data (their first 1,000
    rows, without a loader). Reported is that they are the same in at least the fraction `alike`,
    where any two samples are in at most the fraction `chance`. Of labels that are no whole numbers,
    those that only rise or only fall count as the quarter of all numbers that they lie in.

    ## How to fix
    `DataLoader(dataset, shuffle=True)`, or a sampler; of a data set that is read as a stream, mix
    it once on the disk, and through a buffer as it is read. Begin a pass by `for batch in loader:`,
    since each `iter(loader)` begins at the beginning, and take a `break` out that was for trying.

    ## False alarms
    Data that were mixed before need no `shuffle=True` and are not reported; nor are samples that
    lie in groups shorter than half a batch. Where one class makes up most of the data, any two
    samples are alike, and nothing is said. A curriculum by class on purpose is reported, and so is
    a pass cut short on purpose of a loader that does not shuffle. Passes that each begin with
    another batch, data of a single batch, and passes under `no_grad` are not; a batch that is taken
    once, to see that a model can learn it by heart, is one pass.

    ## References
    Bottou, "Curiously fast convergence of some stochastic gradient descent algorithms" (2009), on
    the order of samples. Goodfellow, Bengio and Courville, "Deep Learning" (2016), section 8.1.3,
    on shuffling before batches are selected.
    """
    for series in run.series("data.repeats"):
        begun, reached, batches = (
            run.at(name, series.site) for name in ("data.passes", "data.reached", "data.batches")
        )
        if begun is None or reached is None or batches is None:
            continue
        fed = batches.last >= _FED * (series.step + 1)
        again = begun.last >= passes and series.last >= begun.last - 1
        if fed and again and reached.last < 1:
            yield _beginning(series, begun.last, batches.last)
    for series in run.series("probe.neighbours_alike"):
        any_two = run.at("probe.any_two_alike", series.site)
        if any_two is not None and series.last >= alike and any_two.last <= chance:
            yield _sorted(series, any_two.last)


def _beginning(series: Series, begun: float, batches: float) -> Evidence:
    each = batches / begun
    return Evidence(
        site=series.site,
        step=series.step,
        message=say(
            "all {passes:.0f} passes over the data began with the same batch and were ended after "
            "{each:.3g} batches on average: what comes later in the data is never seen",
            passes=begun,
            each=each,
        ),
        numbers={"passes": begun, "repeats": series.last, "batches": batches},
        point=Point.INPUT,
        cause=say(
            "A new pass is begun before the last one is over, and the data are not shuffled."
        ),
        fix=say("for x, y in loader: ...  # not next(iter(loader)), which begins anew"),
        excluded=(say("data of a single batch"), say("passes in another order each")),
        series=("data.passes", "data.repeats"),
    )


def _sorted(series: Series, any_two: float) -> Evidence:
    return Evidence(
        site=series.site,
        step=STEP,
        message=say(
            "samples half a batch apart are of the same class, or of the same quarter of all "
            "numbers, in {alike:.0%} of the cases, and any two samples in {chance:.0%}: the "
            "training reads data that lie sorted in their order",
            alike=series.last,
            chance=any_two,
        ),
        numbers={"neighbours_alike": series.last, "any_two_alike": any_two},
        point=Point.INPUT,
        cause=say("Nothing shuffles the data."),
        fix=say("DataLoader(dataset, batch_size=..., shuffle=True)"),
        excluded=(say("a class that most of the data are of"),),
    )
