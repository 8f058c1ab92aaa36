"""Layers whose tensors are not what their names say."""

from collections.abc import Iterator

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.audit.check import Hit, check
from traindx.norm.audit.facts import Subject


@check("malformed-layer", Severity.ERROR)
def malformed_layer(subject: Subject) -> Iterator[Hit]:
    """Shapes or types of a layer's tensors do not fit each other: it was not looked at further."""
    for layer in subject.malformed:
        yield Hit(
            layer.fqn,
            layer.reason,
            say("Load the checkpoint into its model and save it again, or find who wrote it."),
        )
