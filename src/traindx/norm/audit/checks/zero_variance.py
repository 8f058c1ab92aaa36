"""Channels that never varied."""

from collections.abc import Iterator

import numpy as np

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, check
from traindx.norm.audit.facts import VANISHED, Subject


@check("zero-variance", Severity.INFO)
def zero_variance(subject: Subject, *, many: float = 0.5) -> Iterator[Hit]:
    """Channels whose input never varied are constant, until something comes in: then they explode.

    Evaluation divides by sqrt(eps): a deviation of 0.01 becomes 3 with the usual eps. Some such
    channels are common (dead units, the margin of images); from `many` of them on, it is a warning.
    """
    for layer in subject.layers:
        if layer.statistics is None:
            continue
        var = layer.statistics.var
        zero = int(np.sum((var >= 0) & (var < VANISHED)))
        if zero:
            yield Hit(
                layer.fqn,
                say("{zero} of {channels} running variances are 0", zero=zero, channels=var.size),
                say("Look why these channels are constant: dead units before, or masked inputs."),
                {"channels": zero},
                Severity.WARNING if zero >= many * var.size else None,
            )
