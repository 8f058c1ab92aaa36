"""Statistics of one or very few elements."""

from collections.abc import Iterator

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, Needs, check
from traindx.norm.audit.facts import Family, Subject


@check("one-sample-groups", Severity.ERROR, Needs.BATCH)
def one_sample_groups(subject: Subject) -> Iterator[Hit]:
    """Each statistic is taken of a single element: the output is the bias, whatever comes in.

    GroupNorm with as many groups as channels on input without space, InstanceNorm on 1x1 maps,
    LayerNorm over one feature. RMSNorm leaves only the sign. BatchNorm on one element depends on
    the batch alone, so it is left out.
    """
    for layer in subject.layers:
        if layer.seen and layer.seen.elements == 1 and layer.family is not Family.BATCH:
            yield Hit(
                layer.fqn,
                say("each of its statistics is of a single element: nothing of the input is left"),
                say("Use fewer groups, normalize more axes, or leave it out here."),
            )
