"""GroupNorm on channels_last input."""

from collections.abc import Iterator

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, Needs, check
from traindx.norm.audit.facts import Family, Subject


@check("channels-last-group-norm", Severity.WARNING, Needs.BATCH)
def channels_last_group_norm(subject: Subject, *, most: float = 1e-3) -> Iterator[Hit]:
    """On the CPU torch normalizes channels_last groups in one pass, which cancels at a large mean.

    Measured on the batch: torch's normalized values against float64 on the same numbers, in
    standard deviations. With |mean| / std of 1,000 they are off by about a third (torch 2.13).
    """
    for layer in subject.layers:
        seen = layer.seen
        if layer.family is not Family.GROUP or seen is None or seen.error is None:
            continue
        if not seen.error <= most:
            yield Hit(
                layer.fqn,
                say(
                    "its input lies channels last, and its mean is {offset:.3g} times its "
                    "standard deviation: the variance cancels, and values are {error:.2g} off",
                    offset=seen.offset,
                    error=seen.error,
                ),
                say("Call it on `x.contiguous()`, or use `traindx.norm.modules.GroupNorm`."),
                {"offset": seen.offset, "error": seen.error},
            )
