"""L015: the data were scaled by statistics of training and validation together."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Site
from traindx.rules.probed import STEP, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("L015", severity=Severity.WARNING, reads=("probe.joint_scaling",), source="probe")
def preprocessing_leak(run: Run, *, times: float = 100) -> Iterator[Evidence]:
    """The data were standardized with mean and deviation of training and validation together.

    ## Why it matters
    What is measured on validation data is to tell how the network does on data it knows nothing of.
    If their mean and deviation went into the preprocessing, it does know something, and the measure
    is too good: a little for many samples, much for few, or for data that drift.

    ## How it is measured
    Where all samples of both data sets are tensors in memory: of both together, each feature has a
    mean of 0 and a deviation of 1 to the precision of the numbers, while those of training alone
    are more than `times` as far off. Chance does not do that: means of training alone lie off by
    1/sqrt(n), some hundredths of n = 1000. It is looked at per feature, and over all features.

    ## How to fix
    Split first. Take mean and deviation of the training split alone, and use them for both:
    `mean, std = train.mean(0), train.std(0)`, then `(train - mean) / std` and `(val - mean) / std`.

    ## False alarms
    Data that come standardized as a whole, by their publisher, look the same, and are the same. The
    preprocessing of images by published constants (ImageNet's) does not. Not seen are minima and
    maxima of all data, principal components, imputed values and vocabularies.

    ## References
    Kaufman et al., "Leakage in data mining: formulation, detection, and avoidance" (2012). Hastie,
    Tibshirani & Friedman, "The Elements of Statistical Learning" (2009), section 7.10.2.
    """
    for seen in observations(run, "data-splits"):
        ratio = run.at("probe.joint_scaling", seen.site)
        if ratio is not None and ratio.last > times:
            yield Evidence(
                site=Site(seen.site.model, seen.site.fqn),
                step=STEP,
                message=say(
                    "the training data and `{loader}` together have mean 0 and deviation 1, those "
                    "of training alone are {times:.0f} times as far off",
                    loader=seen.site.fqn,
                    times=ratio.last,
                ),
                numbers={"times": ratio.last},
                cause=say("Mean and deviation were taken before the data were split."),
                fix=say("mean, std = train.mean(0), train.std(0)  # of the training split alone"),
                excluded=(say("a mean that is near 0 by chance"),),
            )
