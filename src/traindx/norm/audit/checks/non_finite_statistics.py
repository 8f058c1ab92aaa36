"""Running statistics that are not finite."""

from collections.abc import Iterator

import numpy as np

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, check
from traindx.norm.audit.facts import Subject


@check("non-finite-statistics", Severity.ERROR)
def non_finite_statistics(subject: Subject) -> Iterator[Hit]:
    """Running statistics hold NaN or infinity, so evaluation does, too.

    One batch that was not finite is enough: an average never forgets it.
    """
    for layer in subject.layers:
        if layer.statistics is None:
            continue
        mean, var = layer.statistics.mean, layer.statistics.var
        bad = int(np.sum(~(np.isfinite(mean) & np.isfinite(var))))
        if bad:
            yield Hit(
                layer.fqn,
                say(
                    "{bad} of {channels} channels have statistics that are not finite",
                    bad=bad,
                    channels=mean.size,
                ),
                say(
                    "Find the batch that was not finite, then `{command}`.",
                    command=subject.recalibration,
                ),
                {"channels": bad},
            )
