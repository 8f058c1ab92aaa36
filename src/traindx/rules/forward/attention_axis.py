"""F012: weights of a softmax average over another axis than the one along which they sum to 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule("F012", severity=Severity.ERROR, reads=("probe.softmax_off",), source="probe")
def attention_axis(run: Run) -> Iterator[Evidence]:
    """Attention's softmax is taken over another axis than the one that is averaged over.

    ## Why it matters
    What attention returns for a query should be an average of the values, with weights that sum to
    1 over the keys. With the softmax over the queries, the heads or the batch, the keys compete for
    something else: results grow with the number of keys, a mask no longer excludes what it should,
    and each sample may depend on its neighbours. Nothing fails, and the model learns, worse.

    ## How it is measured
    By preflight, exactly: in one pass in evaluation every softmax is followed to where its weights
    are multiplied with something and summed, by `matmul`, `bmm`, `einsum`, or a product and a
    `sum`. With ones in the place of the values each result must be 1. If it is off by more than
    0.001 while along another axis the weights do sum to 1 within rounding, the softmax was taken
    over that axis. It is told of scores that say how two computed things suit each other (a product
    of both, or a sum over all pairs), and of a softmax over an axis of one element, whose weights
    are all 1.

    ## How to fix
    `scores.softmax(dim=-1)` where the scores are (..., queries, keys). Give `dim` always: without
    it torch takes axis 0 of three-dimensional scores. Scores of shape (batch, steps, 1) need
    `dim=1`.

    ## False alarms
    Clusters that compete for a sample (NetVLAD, DiffPool, capsules, experts) are passed over, since
    their scores come of weights; so are slots whose weights are normalized once more. Clusters that
    are computed from the input and pool without it (k-means cross-attention) are reported: ignore
    the rule there.

    ## References
    Vaswani et al., "Attention is all you need" (2017), section 3.2.1: the softmax gives the weights
    on the values. Locatello et al., "Object-centric learning with slot attention" (2020), section
    2.1, on a softmax over the queries and the normalization that it then needs.
    """
    for seen in observations(run, "softmax-axis"):
        yield _evidence(seen)


def _evidence(seen: Observation) -> Evidence:
    axis, over = int(seen.number("axis")), seen.detail.get("over")
    low, high = seen.number("lowest"), seen.number("highest")
    place = seen.site.fqn or seen.site.model
    if seen.detail.get("single"):
        what = say(
            "in `{place}` ({kind}) a softmax over a single score gives weights of {shape} that are "
            "all 1, and what they should average is summed",
            place=place,
            kind=seen.text("kind"),
            shape=_shape(seen),
        )
    else:
        what = say(
            "in `{place}` ({kind}) weights of {shape} sum to 1 along axis {axis}, where their "
            "softmax was taken, but what they average lies along axis {over}, over which they sum "
            "to {low:.3g} up to {high:.3g}",
            place=place,
            kind=seen.text("kind"),
            shape=_shape(seen),
            axis=axis,
            over=over if isinstance(over, int) else "?",
            low=low,
            high=high,
        )
    return Evidence(
        site=seen.site,
        step=STEP,
        message=what,
        numbers={"axis": axis, "lowest": low, "highest": high},
        cause=say("The keys do not compete with each other for a query."),
        fix=say("weights = scores.softmax(dim=-1)  # of scores of (…, queries, keys)"),
        excluded=(
            say("positions that a mask leaves nothing to attend to"),
            say("weights that are normalized once more"),
            say("clusters that compete for a sample"),
        ),
    )


def _shape(seen: Observation) -> Message | str:
    found = seen.detail.get("shape")
    return "x".join(map(str, cast("list[int]", found))) if isinstance(found, list) else ""
