"""L018: batches are not drawn at random."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Point
from traindx.rules.probed import STEP
from traindx.rules.rule import rule
from traindx.run import Run


@rule("L018", severity=Severity.ERROR, reads=("probe.neighbours_alike",), source="probe")
def data_order(run: Run, *, alike: float = 0.8, chance: float = 0.6) -> Iterator[Evidence]:
    """The data lie sorted by class, and are read in that order.

    ## Why it matters
    Stochastic gradient descent follows each batch as if it were a sample of all data. A batch of
    one class teaches that everything is of this class, the next one teaches it to forget that:
    the loss of a batch looks fine, and what is left is the last class. BatchNorm takes the
    statistics of one class for those of all.

    ## How it is measured
    By preflight, where the training's `DataLoader` reads in order (no `shuffle=True`, no sampler),
    and each sample ends with a whole number. The classes of samples half a batch apart are compared
    at 64 places all over the data. Reported is that they are the same in at least the fraction
    `alike`, where any two samples are in at most the fraction `chance`.

    ## How to fix
    `DataLoader(dataset, shuffle=True)`, or a sampler; of a data set that is read as a stream, mix
    it once on the disk, and through a buffer as it is read.

    ## False alarms
    Data that were mixed before need no `shuffle=True` and are not reported; nor are samples that
    lie in groups shorter than half a batch. Where one class makes up most of the data, any two
    samples are alike, and nothing is said. A curriculum by class on purpose is reported.

    ## References
    Bottou, "Curiously fast convergence of some stochastic gradient descent algorithms" (2009), on
    the order of samples. Goodfellow, Bengio and Courville, "Deep Learning" (2016), section 8.1.3,
    on shuffling before batches are selected.
    """
    for series in run.series("probe.neighbours_alike"):
        any_two = run.at("probe.any_two_alike", series.site)
        if any_two is None or series.last < alike or any_two.last > chance:
            continue
        yield Evidence(
            site=series.site,
            step=STEP,
            message=say(
                "samples half a batch apart are of the same class in {alike:.0%} of the cases, and "
                "any two samples in {chance:.0%}: the training loader reads data that lie sorted "
                "by class in their order",
                alike=series.last,
                chance=any_two.last,
            ),
            numbers={"neighbours_alike": series.last, "any_two_alike": any_two.last},
            point=Point.INPUT,
            cause=say("Nothing shuffles the data."),
            fix=say("DataLoader(dataset, batch_size=..., shuffle=True)"),
            excluded=(say("a class that most of the data are of"),),
        )
