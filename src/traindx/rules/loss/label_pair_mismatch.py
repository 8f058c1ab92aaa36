"""L005: labels do not belong to their inputs."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Point
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("L005", severity=Severity.ERROR, reads=("probe.label_agreement",), source="probe")
def label_pair_mismatch(
    run: Run,
    *,
    told: float = 8,
    chance: float = 3,
    alone: float = 5,
    follows: float = 8,
    rows: float = 500,
    near: float = 0.7,
) -> Iterator[Evidence]:
    """The labels belong to the rows before or after, or to no row that can be told.

    ## Why it matters
    Two files are joined by line number, and one has a header; rows are dropped from one of them;
    inputs are sorted or shuffled, and labels are not. Nothing fails: a network learns the labels of
    the training data by heart, more slowly, and knows nothing of any other.

    ## How it is measured
    By preflight, on the first 1,000 rows of the data, in the order in which they are stored: of the
    loader's data set, or of two tensors of the program that hold the batch's rows and their
    targets. Two cheap learners, nearest neighbours and ridge regression, predict each row's label
    from the other rows; how far predictions agree with the labels is told in standard deviations of
    what labels in random order give.

    Labels of another row: those of a row one, two or three before or after follow from the inputs
    (at least `told` deviations), a row's own do not (at most `chance`), nor do those of any other
    distance (at most `alone`), and no row follows from the one before (at most `follows`). That is
    an error where the label of an earlier row stands with a later input, and else a warning: what
    is to be foretold may also stand among the inputs of the next row.

    Labels of no row: of at least `rows` rows no labels follow from the inputs, though these have a
    structure: the nearest row is at most at the fraction `near` of the distance at which it would
    be if the features had nothing to do with each other, as in images. That is a warning.

    ## How to fix
    Look at some inputs with their labels. Join by a key in place of a line number; shuffle, sort
    and drop with one index for both: `order = torch.randperm(n); x, y = x[order], y[order]`.

    ## False alarms
    In a series, where a row resembles the one before or holds parts of it, labels of other rows
    follow from the inputs by nature, and nothing is said. A task of which neither a straight line
    nor near neighbours know anything, such as a mark in a corner of large images, is not told from
    labels of no row; nor are random labels that are to be learned by heart. Of features that have
    nothing to do with each other, as made-up numbers, labels of no row are never told: a curve may
    bend too often for so few rows. Models of several inputs, of tokens, and data that are read as a
    stream are not looked at.

    ## References
    Ojala and Garriga, "Permutation tests for studying classifier performance" (JMLR 2010). Zhang et
    al., "Understanding deep learning requires rethinking generalization" (ICLR 2017), on random
    labels, which are learned by heart.
    """
    for seen in observations(run, "label-pairs"):
        own = run.at("probe.label_agreement", seen.site)
        shifted = run.at("probe.label_agreement_shifted", seen.site)
        if own is None or shifted is None or own.last > chance or seen.number("second") > alone:
            continue
        if shifted.last >= told and seen.number("follows") <= follows:
            yield _late(seen, own.last, shifted.last)
        elif shifted.last <= alone and seen.number("rows") >= rows and seen.number("near") <= near:
            yield _of_no_row(seen, own.last)


def _late(seen: Observation, own: float, shifted: float) -> Evidence:
    shift = int(seen.number("shift"))
    late = shift > 0
    distance = abs(shift)
    return Evidence(
        site=seen.site,
        step=STEP,
        message=(
            say(
                "the label of each row follows from the inputs {distance} before it ({shifted:.0f} "
                "standard deviations of chance), and not from its own ({own:.1f}): the labels are "
                "late",
                distance=distance,
                shifted=shifted,
                own=own,
            )
            if late
            else say(
                "the label of each row follows from the inputs {distance} after it ({shifted:.0f} "
                "standard deviations of chance), and not from its own ({own:.1f}): the labels are "
                "early",
                distance=distance,
                shifted=shifted,
                own=own,
            )
        ),
        numbers={"shift": float(shift), "own": own, "shifted": shifted},
        point=Point.INPUT,
        cause=say(
            "A row, such as a header, was read or dropped of the inputs or of the labels alone."
        ),
        fix=say("Join inputs and labels by a key; print the first rows of both."),
        severity=Severity.ERROR if late else Severity.WARNING,
        excluded=(say("rows that follow from the one before"), say("labels in random order")),
    )


def _of_no_row(seen: Observation, own: float) -> Evidence:
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "of {rows} rows, the labels follow from the inputs no more than labels in random order "
            "do ({own:.1f} standard deviations), neither of the nearest rows nor along a line",
            rows=int(seen.number("rows")),
            own=own,
        ),
        numbers={"own": own, "rows": seen.number("rows"), "near": seen.number("near")},
        point=Point.INPUT,
        cause=say("Inputs or labels were shuffled, sorted or filtered without the other."),
        fix=say("order = torch.randperm(len(x)); x, y = x[order], y[order]"),
        severity=Severity.WARNING,
        excluded=(
            say("features that have nothing to do with each other"),
            say("labels of a row near by"),
        ),
    )
