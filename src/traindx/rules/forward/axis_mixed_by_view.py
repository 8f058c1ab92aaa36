"""F013: a view or reshape stands where axes should be exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.records import Site
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "F013",
    severity=Severity.WARNING,
    reads=("probe.moved_axes",),
    source="probe",
    explained_by=("E007",),
)
def axis_mixed_by_view(run: Run) -> Iterator[Evidence]:
    """A view or reshape makes the shape that a transpose would, and mixes what the axes hold.

    ## Why it matters
    A reshape keeps the order of the elements and draws other borders between them. Of pictures of
    (height, width, channels) viewed as (channels, height, width) each channel is a third of the
    picture with all its colours in turn; of (steps, heads * width) viewed as (heads, steps, width)
    each head sees a few steps whole. The sizes fit, nothing fails, and the model learns, worse.

    ## How it is measured
    By preflight, from the shapes in one pass in evaluation. An axis that has the same size before
    and after a `view`, `reshape` or `flatten`, but lies elsewhere among axes that are not merely
    split or merged, was meant to be moved, and was not: its numbers are others'. So it is where
    axes that were merged into the first one are split in another order. The same is read between
    the model's output and its loss, and from a batch that is itself a view of another shape. Of
    each module the first is told. Pictures of two to four channels are judged by their pixels
    besides: where the squared differences between neighbours fall to less than half once the
    channels are taken to come last, they do come last.

    ## How to fix
    Exchange axes with `transpose` or `permute`, split and merge them with `reshape`:
    `x.permute(0, 3, 1, 2)` for pictures with channels last; `x.view(batch, steps, heads,
    -1).transpose(1, 2)` for heads, and `x.transpose(1, 2).reshape(batch, steps, -1)` back again.

    ## False alarms
    Rows of n and n + 1 that are read as n + 1 and n skew a matrix on purpose (relative positions),
    and are passed over. A signal of 64 numbers that is cut into 16 rows of 4, and later into 4 of
    16, has no axes to keep, and is reported all the same.

    ## References
    PyTorch documentation, `torch.Tensor.view`. Vaswani et al., "Attention is all you need" (2017),
    section 3.2.2, on heads. Huang et al., "Music transformer" (2019), section 3.4.1, on skewing.
    """
    found: dict[Site, list[Observation]] = {}
    for seen in observations(run, "reshaped-axes"):
        found.setdefault(seen.site, []).append(seen)
    for several in found.values():
        yield _evidence(several[0], len(several))


def _evidence(seen: Observation, reshapes: int) -> Evidence:
    before, after, axis = _shape(seen, "before"), _shape(seen, "after"), int(seen.number("axis"))
    return Evidence(
        site=seen.site,
        step=STEP,
        message=_message(seen, before, after, axis),
        numbers={"axis": axis, "reshapes": reshapes},
        cause=say("A reshape keeps the order of the elements: it cannot move an axis."),
        fix=_fix(before, after) if seen.text("by") != "split" else _split(before),
        excluded=(
            say("axes that are split or merged"),
            say("a matrix that is skewed on purpose"),
        ),
    )


def _message(seen: Observation, before: list[int], after: list[int], axis: int) -> Message:
    place = seen.site.fqn or seen.site.model
    if seen.text("by") == "picture":
        return say(
            "neighbouring pixels of the input {after} of {place} are more than twice as alike once "
            "it is read as {before}: its channels come last",
            after=_text(after),
            before=_text(before),
            place=place,
        )
    if seen.text("by") == "input":
        return say(
            "the input {after} of {place} is a view of {before}, in which the axis of {axis} lies "
            "elsewhere",
            after=_text(after),
            before=_text(before),
            place=place,
            axis=axis,
        )
    if seen.text("by") == "loss":
        return say(
            "on the way to the loss the output {before} of {place} is reshaped to {after}, in "
            "which the axis of {axis} lies elsewhere: it has other elements now",
            before=_text(before),
            after=_text(after),
            place=place,
            axis=axis,
        )
    if seen.text("by") == "split":
        return say(
            "in `{place}` ({kind}) rows that were {before} before they were merged are split into "
            "{after}",
            place=place,
            kind=seen.text("kind"),
            before=_text(before),
            after=_text(after),
        )
    return say(
        "in `{place}` ({kind}) {before} is reshaped to {after}, in which the axis of {axis} lies "
        "elsewhere: it has other elements now",
        place=place,
        kind=seen.text("kind"),
        before=_text(before),
        after=_text(after),
        axis=axis,
    )


def _fix(before: list[int], after: list[int]) -> Message:
    """Which axes are to be exchanged, where the shapes tell."""
    if len(before) == len(after) and sorted(before) == sorted(after):
        waiting, order = list(enumerate(before)), list[int]()
        for size in after:
            place = next(axis for axis, n in waiting if n == size)
            waiting.remove((place, size))
            order.append(place)
        return say("x.permute({order})", order=", ".join(map(str, order)))
    if len(after) > len(before):
        return say("split the axis with `view` first, then exchange axes with `transpose`")
    return say("exchange axes with `transpose` first, then merge them with `reshape`")


def _split(before: list[int]) -> Message:
    sizes = ", ".join(map(str, before))
    return say("x.view({sizes}, *x.shape[1:]).transpose(0, 1)", sizes=sizes)


def _shape(seen: Observation, name: str) -> list[int]:
    found = seen.detail.get(name)
    return cast("list[int]", found) if isinstance(found, list) else []


def _text(shape: list[int]) -> str:
    return "x".join(map(str, shape))
