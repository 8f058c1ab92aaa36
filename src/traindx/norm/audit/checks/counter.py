"""Counters of batches that disagree."""

from collections.abc import Iterator
from statistics import median

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, check
from traindx.norm.audit.facts import Family, Layer, Subject

_APART = 1.05
"""Ratio from which two counters do not count the same."""


def _batches(layer: Layer) -> int | None:
    return None if layer.statistics is None else layer.statistics.batches


@check("lost-counter", Severity.INFO)
def lost_counter(subject: Subject) -> Iterator[Hit]:
    """Statistics are there but their counter is 0: they were loaded or ported without it.

    With `momentum=None` the next training batch would replace them altogether. InstanceNorm never
    counts, which a checkpoint does not tell apart.
    """
    for layer in subject.layers:
        if layer.family is Family.INSTANCE:
            continue
        if layer.statistics and layer.statistics.batches == 0 and not layer.statistics.initial:
            yield Hit(
                layer.fqn,
                say("its statistics are used, but it counts no batch"),
                say(
                    "Before training on with `momentum=None`, set it: "
                    "`norm.num_batches_tracked.fill_(steps)`."
                ),
            )


@check("counter-disagrees", Severity.WARNING)
def counter_disagrees(subject: Subject) -> Iterator[Hit]:
    """A layer has counted other batches than there were steps, or than its siblings.

    Fewer: it was frozen, in eval mode, or skipped. More: it was called several times a step, or
    checkpointing ran it again. Accumulating gradients counts every micro-batch. Only a hint where
    the steps are not known: a new head on old layers, or a shared one, counts otherwise rightly.
    """
    counted = {layer.fqn: n for layer in subject.layers if (n := _batches(layer))}
    if not counted:
        return
    severity = None if subject.steps else Severity.INFO
    usual = subject.steps or median(counted.values())
    whom = say("the {n} steps", n=subject.steps) if subject.steps else say("its siblings")
    for fqn, batches in counted.items():
        times = batches / usual
        if not 1 / _APART < times < _APART:
            yield Hit(
                fqn,
                say(
                    "it has counted {batches} batches, {times:.3g} times as many as {whom}",
                    batches=batches,
                    times=times,
                    whom=whom,
                ),
                say(
                    "Look how often it is called, and where it is frozen or in eval mode; "
                    "`--steps` are micro-batches."
                ),
                {"batches": batches, "times": times},
                severity,
            )
