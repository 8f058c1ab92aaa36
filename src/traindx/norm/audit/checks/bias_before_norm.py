"""Biases that normalization takes away again."""

from collections.abc import Iterator

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, Needs, check
from traindx.norm.audit.facts import Family, Subject


@check("bias-before-norm", Severity.INFO, Needs.BATCH)
def bias_before_norm(subject: Subject) -> Iterator[Hit]:
    """A bias right before BatchNorm or InstanceNorm does nothing: the mean takes it away again.

    Its gradient is 0 but for rounding; weight decay and its place in memory are all it has.
    """
    for layer in subject.layers:
        biased = layer.seen.biased_layer if layer.seen else ""
        if biased and layer.family in (Family.BATCH, Family.INSTANCE):
            yield Hit(
                layer.fqn,
                say("the bias of {layer} does nothing", layer=biased),
                say("Make that layer with `bias=False`."),
            )
