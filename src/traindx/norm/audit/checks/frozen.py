"""Layers that are frozen but go on changing."""

from collections.abc import Iterator

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, Needs, check
from traindx.norm.audit.facts import Subject


@check("frozen-but-updating", Severity.WARNING, Needs.MODEL)
def frozen_but_updating(subject: Subject) -> Iterator[Hit]:
    """Weight and bias are frozen, but the layer is in training mode: its statistics go on moving.

    `requires_grad_(False)` does not freeze buffers; only `eval()` does.
    """
    for layer in subject.layers:
        settings = layer.settings
        if settings and settings.tracks and settings.training and settings.trainable is False:
            yield Hit(
                layer.fqn,
                say("its parameters are frozen, its running statistics are not"),
                say("After every `model.train()` set it to evaluation: `norm.eval()`."),
            )
