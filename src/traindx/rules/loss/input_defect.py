"""L008: the batch holds NaN, copies, or nothing that varies."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import Message, listed, say
from traindx.records import Point, Site
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run

_FEW = 8
"""Samples below which copies say nothing."""
_MANY = 64
"""Elements of a sample from which on it should hold something."""


@rule("L008", severity=Severity.ERROR, reads=("probe.input_nonfinite",), source="probe")
def input_defect(
    run: Run,
    *,
    copies: float = 0.5,
    constant: float = 0.5,
    blank: float = 0.02,
    filled: float = 0.05,
) -> Iterator[Evidence]:
    """The batch holds NaN or infinite numbers, the same sample again and again, or next to nothing.

    ## Why it matters
    One NaN in a batch makes the loss NaN, and the next step all weights. A batch of copies, from a
    wrong index, a generator that is used up or an augmentation that overwrites, has the gradient of
    a single sample; nothing can be learned from inputs that do not vary, and not much from what is
    left of them by a division or a cast to whole numbers.

    ## How it is measured
    On one batch before training. NaN and infinite elements in any tensor that the model or its loss
    is given are an error; negative infinity without NaN is taken for a mask. All samples alike, of
    8 or more and in every tensor, is an error; more than the fraction `copies` of them equal to
    an earlier one is a warning if the values are not all whole numbers. More than the fraction
    `constant` of the features (elements of a sample) the same in all samples is information, again
    if they are not whole numbers. A warning is that of samples of 64 and more whole numbers, given
    as floats, more than the fraction `blank`, and at least two, are nothing but zeros, and at most
    the fraction `filled` of all elements is anything else.

    ## How to fix
    Look at the batch: `x.isnan().nonzero()`, `torch.unique(x, dim=0)`. Fill or drop missing
    values before training, from statistics of the training split. Check the `__getitem__` of the
    dataset and the sampler. Divide after the cast to floats, by `/` and not `//`.

    ## False alarms
    Tokens, states of a small world and other whole numbers repeat by nature, also if they are
    scaled to evenly spaced values; only a batch of nothing but copies is reported of them. Images
    with an empty border have constant features, fewer than half. Sampling with replacement gives
    some copies, 37 % at most of a batch as large as the data. One-hot vectors are never blank, and
    bags of words seldom; a piano roll may be, where nothing is played. A model that generates from
    noise it draws itself is given what does not matter.

    ## References
    Breck et al., "Data validation for machine learning" (MLSys 2019). CS231n, "Neural Networks Part
    3", on looking at the data first.
    """
    for seen in observations(run, "input-values"):
        nonfinite = run.at("probe.input_nonfinite", seen.site)
        if nonfinite is not None and nonfinite.last:
            yield _nonfinite(seen, int(nonfinite.last))
        elif _is_nearly_empty(seen, blank, filled):
            yield _nearly_empty(seen)
        elif found := _repeated(seen, copies, constant):
            yield found


def _nonfinite(seen: Observation, count: int) -> Evidence:
    broken = seen.detail.get("broken")
    names = listed(f"`{name}`" for name in broken) if isinstance(broken, list) else say("the batch")
    message = say("{count} elements of {names} are NaN or infinite", count=count, names=names)
    return _evidence(
        seen,
        message,
        say("Missing values, or a division by zero, reach the batch."),
        say("assert x.isfinite().all()  # and fill or drop what is missing before training"),
        Severity.ERROR,
    )


def _is_nearly_empty(seen: Observation, blank: float, filled: float) -> bool:
    """Whether many samples are blank, but not all, and the others nearly so."""
    samples, empty = seen.number("samples"), seen.number("blank")
    given = bool(seen.detail.get("whole")) and bool(seen.detail.get("real"))
    many = max(1, blank * samples) < empty < samples
    return given and many and seen.number("filled") <= filled and seen.number("features") >= _MANY


def _nearly_empty(seen: Observation) -> Evidence:
    return _evidence(
        seen,
        say(
            "{blank} of the {samples} samples of the batch are nothing but zeros, and in all of "
            "them only {filled:.2g} of the elements are anything else, all whole numbers",
            blank=int(seen.number("blank")),
            samples=int(seen.number("samples")),
            filled=seen.number("filled"),
        ),
        say("The data were divided, or cast, as whole numbers, and what lies between was lost."),
        say("x = x.astype(numpy.float32) / 255  # not //, and the cast comes first"),
        Severity.WARNING,
    )


def _repeated(seen: Observation, copies: float, constant: float) -> Evidence | None:
    samples, distinct = int(seen.number("samples")), int(seen.number("distinct"))
    whole = bool(seen.detail.get("whole"))
    if samples < _FEW:
        return None
    if distinct == 1 or (not whole and samples - distinct > copies * samples):
        return _evidence(
            seen,
            say(
                "of the {samples} samples of the batch only {distinct} differ",
                samples=samples,
                distinct=distinct,
            ),
            say("The dataset or the sampler gives the same sample again and again."),
            say("print(torch.unique(x, dim=0).shape, x.shape)  # and look at `__getitem__`"),
            Severity.ERROR if distinct == 1 else Severity.WARNING,
        )
    if not whole and seen.number("constant_fraction") > constant and seen.number("features") > 1:
        return _evidence(
            seen,
            say(
                "{fraction:.0%} of the {features} features are the same in all samples of the "
                "batch",
                fraction=seen.number("constant_fraction"),
                features=int(seen.number("features")),
            ),
            say("They tell no sample from another."),
            say("Leave them out, or look whether the data were read as they should be."),
            Severity.INFO,
        )
    return None


def _evidence(
    seen: Observation, message: Message, cause: Message, fix: Message, severity: Severity
) -> Evidence:
    return Evidence(
        site=Site(seen.site.model),
        step=STEP,
        message=message,
        numbers={name: seen.number(name) for name in ("samples", "distinct", "constant_fraction")},
        point=Point.INPUT,
        cause=cause,
        fix=fix,
        severity=severity,
    )
