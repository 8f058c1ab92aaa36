"""Running variances below 0."""

from collections.abc import Iterator

import numpy as np

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, check
from traindx.norm.audit.facts import Subject


@check("negative-variance", Severity.ERROR)
def negative_variance(subject: Subject) -> Iterator[Hit]:
    """A running variance is negative: no batch can have made it.

    It comes of weight averaging that extrapolates, of weight decay or an optimizer that was given
    the buffers, of a variance as E[x^2] - E[x]^2 in low precision, or of a port.
    """
    for layer in subject.layers:
        if layer.statistics is None:
            continue
        var = layer.statistics.var
        bad = int(np.sum(var < 0))
        if bad:
            least = float(np.min(var[var < 0]))
            yield Hit(
                layer.fqn,
                say(
                    "{bad} of {channels} running variances are negative, down to {least:.3g}",
                    bad=bad,
                    channels=var.size,
                    least=least,
                ),
                say(
                    "Keep buffers out of whatever changed them, then recalibrate: `{command}`.",
                    command=subject.recalibration,
                ),
                {"channels": bad, "least": least},
            )
