"""Statistics that no batch has made."""

from collections.abc import Iterator

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, check
from traindx.norm.audit.facts import Subject


@check("never-updated", Severity.WARNING)
def never_updated(subject: Subject) -> Iterator[Hit]:
    """Running statistics are still 0 and 1, so evaluation normalizes nothing.

    The layer was never called in training mode, or its momentum is 0. Of a model that has not been
    trained at all it says nothing.
    """
    tracking = [layer for layer in subject.layers if layer.statistics is not None]
    fresh = [layer for layer in tracking if layer.statistics and layer.statistics.initial]
    counted = any(layer.statistics and layer.statistics.batches for layer in tracking)
    if len(fresh) == len(tracking) and not (counted or subject.steps):
        return
    for layer in fresh:
        batches = layer.statistics.batches if layer.statistics else None
        if batches:
            message = say(
                "{batches} batches were counted, but the statistics are still 0 and 1",
                batches=batches,
            )
            fix = say(
                "Its momentum is 0, or they were reset: `norm.momentum = 0.1`, then `{command}`.",
                command=subject.recalibration,
            )
        else:
            message = say("the statistics are still 0 and 1: no batch has come")
            fix = say(
                "Call it in training mode, or recalibrate: `{command}`.",
                command=subject.recalibration,
            )
        yield Hit(layer.fqn, message, fix)
