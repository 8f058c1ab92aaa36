"""Momentum: what it means here, and what it has left of the beginning."""

from collections.abc import Iterator

from traindx.findings import Severity
from traindx.messages import Message, say
from traindx.norm.audit.check import Hit, Needs, check
from traindx.norm.audit.facts import Family, Layer, Subject


@check("momentum-of-another-framework", Severity.WARNING, Needs.MODEL)
def momentum_of_another_framework(subject: Subject, *, most: float = 0.5) -> Iterator[Hit]:
    """A momentum near 1 is the old value's weight in Keras and Flax, the new one's in torch.

    At 0.99 the statistics are those of the last batch: evaluation is as noisy as training.
    """
    for layer in subject.layers:
        momentum = layer.settings.momentum if layer.settings else None
        if momentum is not None and momentum > most and layer.settings and layer.settings.tracks:
            yield Hit(
                layer.fqn,
                say(
                    "momentum {momentum:g} averages the last {batches:.2g} batches",
                    momentum=momentum,
                    batches=1 / momentum,
                ),
                _right(momentum),
                {"momentum": momentum},
            )


def _right(momentum: float) -> Message:
    if momentum < 1:
        return say(
            "If it came from Keras or Flax, use 1 - momentum: `norm.momentum = {right:.3g}`.",
            right=1 - momentum,
        )
    return say("Use `norm.momentum = 0.1`: from 1 on, nothing is averaged.")


@check("statistics-from-the-start", Severity.WARNING, Needs.DATA)
def statistics_from_the_start(
    subject: Subject, *, most: float = 0.05, gap: float = 0.1
) -> Iterator[Hit]:
    """Too few batches for this momentum: the initial 0 and 1 still weigh in the statistics.

    Their weight is (1 - momentum)^batches. Where a batch shows that they are right all the same,
    they have been recalibrated, so without one nothing is said.
    """
    for layer in subject.layers:
        if layer.statistics is None or layer.settings is None or layer.seen is None:
            continue
        if not layer.statistics.batches:
            continue
        momentum = layer.settings.momentum
        if not momentum or layer.statistics.initial or _is_right(layer, gap):
            continue
        weight = abs(1 - momentum) ** layer.statistics.batches
        if weight > most:
            yield Hit(
                layer.fqn,
                say(
                    "after {batches} batches at momentum {momentum:g}, {weight:.0%} of the "
                    "statistics are the initial 0 and 1",
                    batches=layer.statistics.batches,
                    momentum=momentum,
                    weight=weight,
                ),
                say(
                    "Recalibrate: `{command}`; or train with `momentum=0.1`.",
                    command=subject.recalibration,
                ),
                {"initial_weight": weight},
            )


def _is_right(layer: Layer, gap: float) -> bool:
    return layer.seen is not None and layer.seen.gap is not None and layer.seen.gap <= gap


@check("instance-norm-without-momentum", Severity.WARNING, Needs.MODEL)
def instance_norm_without_momentum(subject: Subject) -> Iterator[Hit]:
    """InstanceNorm takes `momentum=None` as 0: its statistics never move (BatchNorm's average)."""
    for layer in subject.layers:
        settings = layer.settings
        if settings is None or layer.family is not Family.INSTANCE:
            continue
        if settings.tracks and settings.momentum is None:
            yield Hit(
                layer.fqn,
                say("momentum None means 0 here: its running statistics never move"),
                say("Give it a number: `norm.momentum = 0.1`."),
            )
