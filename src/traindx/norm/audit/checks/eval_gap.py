"""Evaluation that is not what training was."""

from collections.abc import Iterator

import numpy as np

from traindx.findings import Severity
from traindx.messages import Message, say
from traindx.norm.audit.check import Hit, Needs, check
from traindx.norm.audit.facts import Layer, Subject

_HARMLESS = 0.1
"""Change of the model's output, over its size, under which a gap is only a warning."""


@check("eval-gap", Severity.ERROR, Needs.DATA)
def eval_gap(subject: Subject, *, gap: float = 0.5, noise: float = 2.0) -> Iterator[Hit]:
    """Running statistics are far from those of the batch, so evaluation computes something else.

    The gap is in standard deviations of the normalized values (`norm.running_gap`). A batch of n
    samples differs by chance: about sqrt(1.5 / n) of them, of which `noise` times are let pass.
    A warning where the model's output changes by less than a tenth of its size, else an error.
    Layers that no batch has come to yet are `never-updated`'s.
    """
    harmless = subject.change is not None and subject.change < _HARMLESS
    for layer in subject.layers:
        seen = layer.seen
        if seen is None or seen.gap is None or _is_fresh(layer):
            continue
        by_chance = noise * float(np.sqrt(1.5 / max(seen.samples, 1)))
        if not seen.gap <= max(gap, by_chance):
            yield Hit(
                layer.fqn,
                _message(seen.gap, seen.share),
                say(
                    "Recalibrate: `{command}`.",
                    command=subject.recalibration,
                ),
                {"gap": seen.gap, **({} if seen.share is None else {"share": seen.share})},
                Severity.WARNING if harmless else None,
            )


def _is_fresh(layer: Layer) -> bool:
    statistics = layer.statistics
    return statistics is not None and statistics.initial and not statistics.batches


def _message(gap: float, share: float | None) -> Message:
    if not np.isfinite(gap):
        return say("on the batch, evaluation is not finite")
    if share is None:
        return say("on the batch, evaluation is {gap:.3g} standard deviations off", gap=gap)
    return say(
        "on the batch, evaluation is {gap:.3g} standard deviations off, and makes {share:.0%} of "
        "the change of the model's output",
        gap=gap,
        share=share,
    )
