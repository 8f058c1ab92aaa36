"""L010: augmented data are not what was meant."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import Point, Site
from traindx.rules.probed import STEP, observation
from traindx.rules.rule import rule
from traindx.run import Run, Series


@rule(
    "L010",
    severity=Severity.WARNING,
    reads=("probe.random_part", "probe.workers_alike", "probe.turned_alone"),
    source="probe",
)
def augmentation_wrong(
    run: Run,
    *,
    times: float = 5,
    beyond: float = 3,
    sure: float = 3,
    turned: float = 3,
    random: float = 0.5,
) -> Iterator[Evidence]:
    """Random changes of the data are in other units, of a picture alone, or where none belong.

    ## Why it matters
    Noise of twenty grey levels is hardly seen on an image of 255, and drowns one that has been
    standardized before: what is left to see is noise. Workers that draw the same random numbers
    make the same crops and the same noise, as many times as there are workers, so that a batch has
    less in it than it seems; and passes that begin with the same numbers make what was to be new
    each time once and for all. A picture that is turned without its mask has the mask of another;
    and a measure on data that change by chance is of harder data than there are.

    ## How it is measured
    By preflight. Of a data set that is read by place, up to 64 samples are read up to 64 times
    each. An analysis of variance tells what is random of their elements from what is the same each
    time. An error is a random part of at least `times` the lasting one, and of more than `beyond`,
    where the lasting part lies between 0.1 and 2.5, as of scaled data, and at least `sure` standard
    errors from none.

    Of a loader with two workers or more, two are started twice as it would start them, and asked
    for the same samples. A warning is that both give the very same, and each something else the
    next time it is asked; or that a second pass begins like the first, where workers are not kept.

    Of up to 16 samples that are read six times: an error is that of a picture and a mask of its
    height and width one is flipped or rotated where the other stays as it is, `turned` times, and
    never both. Of loaders whose variable is called after validation or testing (`val`, `test`,
    `eval`, `dev`, `held`), a warning is that more than the fraction `random` of the inputs differ
    the next time they are read, though their targets do not, by less than other samples would.

    ## How to fix
    Augment first, and scale last; or give noise, erased values and offsets in the scaled unit. In
    workers, draw from `torch`, or from a generator that is made in `worker_init_fn` from
    `torch.initial_seed()`, which is another one for each worker and pass.

    ## False alarms
    Noisy inputs with the clean ones as their target, which is noise on purpose, are not looked at,
    nor are samples that are simulated when they are asked for and have no lasting part; crops are
    as large as the data they are cut from. Augmentation within the training loop is not seen. Where
    the same noise in each pass is meant, the second part of it may be passed over. Augmentation in
    testing on purpose, whose answers are averaged, is reported.

    ## References
    PyTorch documentation, `torch.utils.data`, "Randomness in multi-process data loading". Jiang et
    al., "Training with confidence: catching silent errors in deep learning training with automated
    proactive checks" (OSDI 2025), which finds identical random numbers of workers.
    """
    for series in run.series("probe.random_part"):
        lasting = run.at("probe.lasting_part", series.site)
        seen = observation(run, "augmentation-noise", series.site)
        if lasting is None or seen is None or seen.number("sure") < sure:
            continue
        large = series.last > beyond and series.last >= times * lasting.last
        if large and 0.1 <= lasting.last <= 2.5:
            yield _noise(series, lasting.last)
    for series in run.series("probe.workers_alike"):
        again = run.at("probe.passes_alike", series.site)
        if series.last or (again is not None and again.last):
            yield _dice(series.site, workers=bool(series.last))
    for series in run.series("probe.turned_alone"):
        together = run.at("probe.turned_together", series.site)
        if series.last >= turned and together is not None and not together.last:
            yield _turned_alone(series)
    for series in run.series("probe.evaluation_random"):
        if series.last > random:
            yield _in_evaluation(series)


def _noise(series: Series, lasting: float) -> Evidence:
    return Evidence(
        site=series.site,
        step=STEP,
        message=say(
            "what is random of the training's samples varies by {random:.3g}, and what is the same "
            "each time they are read by {lasting:.3g}: there is {times:.0f} times as much noise as "
            "data",
            random=series.last,
            lasting=lasting,
            times=series.last / lasting,
        ),
        numbers={"random": series.last, "lasting": lasting},
        point=Point.INPUT,
        cause=say(
            "The augmentation is in another unit than the data, which were scaled before it."
        ),
        fix=say("transforms = [augment, standardize]  # in this order, or in the scaled unit"),
        severity=Severity.ERROR,
        excluded=(say("samples without a lasting part"), say("clean inputs as the target")),
    )


def _dice(site: Site, *, workers: bool) -> Evidence:
    message: Message = (
        say(
            "two workers of the training's loader make the very same of the same samples, though "
            "each makes something else the next time: they draw the same random numbers"
        )
        if workers
        else say(
            "a second pass over the training's loader makes the very same of the same samples as "
            "the first, though they are random: each pass draws the same random numbers"
        )
    )
    return Evidence(
        site=site,
        step=STEP,
        message=message,
        numbers={"workers_alike": float(workers)},
        point=Point.INPUT,
        cause=say(
            "The generator is seeded with the same number in each worker or pass, or was copied "
            "into each with the data set."
        ),
        fix=say(
            "def worker_init_fn(worker):\n"
            "    numpy.random.seed(torch.initial_seed() % 2**32)  # and generators of your own"
        ),
        excluded=(say("samples that are the same each time"),),
    )


def _turned_alone(series: Series) -> Evidence:
    return Evidence(
        site=series.site,
        step=STEP,
        message=say(
            "of the training's pictures and masks one was flipped or rotated in {times:.0f} "
            "readings in which the other stayed as it was, and both together in none",
            times=series.last,
        ),
        numbers={"turned_alone": series.last},
        point=Point.INPUT,
        cause=say("The augmentation is of the picture or of the mask, and not of both."),
        fix=say("if torch.rand(()) < 0.5:\n    picture, mask = picture.flip(-1), mask.flip(-1)"),
        severity=Severity.ERROR,
        excluded=(say("pictures that are the same after they are turned"),),
    )


def _in_evaluation(series: Series) -> Evidence:
    return Evidence(
        site=Site(series.site.model),
        step=STEP,
        message=say(
            "{share:.0%} of the samples of `{loader}` are other inputs the next time they are "
            "read, with the same target: they are augmented",
            share=series.last,
            loader=series.site.fqn,
        ),
        numbers={"random": series.last},
        point=Point.INPUT,
        cause=say("The data for evaluation are made by the transforms of the training."),
        fix=say("Dataset(test_files, transform=standardize)  # nothing that is random"),
        excluded=(say("samples that are made anew each time"), say("clean inputs as the target")),
    )
