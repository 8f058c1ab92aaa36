"""Normalization in half precision."""

from collections.abc import Iterator

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, check
from traindx.norm.audit.facts import Subject

_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Distance from 1 to the next number."""
_USUAL_MOMENTUM = 0.1


@check("half-precision-statistics", Severity.WARNING)
def half_precision_statistics(subject: Subject) -> Iterator[Hit]:
    """Running statistics in half precision stall before they are right.

    An update moves them by momentum times the difference; once that is under what is rounded away,
    they stop. torch rounds 1 - momentum (by epsilon / 4), its product, and the sum (epsilon / 2
    each), so they stop up to 1.25 epsilon / momentum off, relative to their size.
    """
    for layer in subject.layers:
        epsilon = layer.statistics and _EPSILON.get(layer.statistics.dtype)
        if not epsilon or layer.statistics is None:
            continue
        momentum = layer.settings.momentum if layer.settings else _USUAL_MOMENTUM
        if momentum == 0:
            continue
        # An average of all batches moves by ever less; after its first hundred, by a hundredth.
        stall = 1.25 * epsilon / (momentum or 0.01)
        yield Hit(
            layer.fqn,
            say(
                "its statistics are kept in {dtype}: they stall up to {stall:.2g} off, relative "
                "to their size",
                dtype=layer.statistics.dtype,
                stall=stall,
            ),
            say("Keep normalization in float32: `norm.float()`, or autocast instead of `.half()`."),
            {"stall": stall},
        )


@check("half-precision-norm", Severity.INFO)
def half_precision_norm(subject: Subject) -> Iterator[Hit]:
    """A normalization's weight is kept in float16, whose sums of squares overflow at 65,504.

    torch's own kernels widen what they sum; hand-written ones and other runtimes often do not.
    """
    for layer in subject.layers:
        if layer.weight_dtype == "float16" and layer.statistics is None:
            yield Hit(
                layer.fqn,
                say("its weight is kept in float16"),
                say("Keep normalization in float32: `norm.float()`."),
            )
