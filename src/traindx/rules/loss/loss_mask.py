"""L019: what should not count in the loss does, or what should does not."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.findings import Evidence, Severity
from traindx.messages import say
from traindx.records import Point
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "L019",
    severity=Severity.ERROR,
    reads=("probe.padding_counted", "probe.classes_left_out"),
    source="probe",
)
def loss_mask(run: Run, *, counted: float = 0.5) -> Iterator[Evidence]:
    """Padding counts in the loss as if it were data, or the samples of a class do not count.

    ## Why it matters
    A batch of texts is filled up to the longest. Where the filling counts, much of the loss is to
    say the one word that is always right there, which is learned at once: the loss looks low, its
    gradient is shared out over positions that teach nothing, and the more so the more a batch is
    filled. The other way round, a class whose samples have no gradient is never learned, and every
    sample of it is taken for another.

    ## How it is measured
    By preflight, with the exact gradient of the loss at the model's output. Padding is told by the
    data: one word, or zeros, at the end of at least a quarter of the samples, of several lengths,
    next to nowhere else, and a target that is constant there. Reported, as a warning, is that at
    least the fraction `counted` of it has a gradient; its first position may, since it ends the
    text. Of a cross-entropy with one label a sample it is reported that no sample of a class (of at
    least 4) has a gradient, and every sample of the other classes has.

    ## How to fix
    `cross_entropy(scores.transpose(1, 2), words, ignore_index=PAD)`, or
    `(loss * mask).sum() / mask.sum()` of a loss with `reduction="none"`. Where a class is left out,
    take the `ignore_index`, the weight of 0 or the mask away that meets it: labels that stand for
    nothing are best -100, which no class is.

    ## False alarms
    Where one word at the end is a part of the answer, as blanks behind a sum, it is to count, and
    what is said of it may be passed over. An image that is read row by row has empty rows at its
    end: where the target is the image itself nothing is said. A class that is left out on purpose
    is reported; samples without a label have none that is a class.

    ## References
    PyTorch documentation, `torch.nn.CrossEntropyLoss`, on `ignore_index` and `weight`.
    """
    for seen in observations(run, "loss-mask"):
        series = run.at("probe.padding_counted", seen.site)
        if seen.text("what") == "class":
            yield _left_out(seen)
        elif series is not None and series.last >= counted:
            yield _padding(seen, series.last)


def _padding(seen: Observation, counted: float) -> Evidence:
    share = seen.number("share")
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "{share:.0%} of the positions of the batch are padding, and {counted:.0%} of those "
            "inside it have a gradient: they count in the loss of {model}",
            share=share,
            counted=counted,
            model=seen.site,
        ),
        numbers={"padding": share, "counted": counted},
        point=Point.OUTPUT,
        cause=say("The loss is not told which positions are padding."),
        fix=say("F.cross_entropy(scores.transpose(1, 2), words, ignore_index=PAD)"),
        severity=Severity.WARNING,
        excluded=(say("the word that ends a text"), say("a word that stands elsewhere, too")),
    )


def _left_out(seen: Observation) -> Evidence:
    label, samples = int(seen.number("label")), int(seen.number("samples"))
    return Evidence(
        site=seen.site,
        step=STEP,
        message=say(
            "none of the {samples} samples of class {label} has a gradient, and every sample of "
            "the other classes has: class {label} is not learned",
            samples=samples,
            label=label,
        ),
        numbers={"class": float(label), "samples": float(samples)},
        point=Point.OUTPUT,
        cause=say("The loss leaves class {label} out.", label=label),
        fix=say(
            "loss = F.cross_entropy(scores, target)  # no ignore_index, weight 0 or mask of it"
        ),
        excluded=(say("labels that are no class"),),
    )
