"""S009: a normalization normalizes over the wrong axes, or over too few numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from traindx.findings import Evidence, Severity
from traindx.messages import Message, say
from traindx.rules.probed import STEP, Observation, observations
from traindx.rules.rule import rule
from traindx.run import Run


@rule(
    "S009",
    severity=Severity.WARNING,
    reads=("probe.norm_group",),
    source="probe",
    explained_by=("N003", "N006"),
)
def norm_layout(run: Run, *, smallest: float = 4) -> Iterator[Evidence]:
    """A normalization layer takes its mean over the wrong axes, or over too few numbers.

    ## Why it matters
    Of two numbers a normalization leaves which is the larger, and of a few mostly chance. A
    LayerNorm behind a convolution that is given the last axis normalizes each channel along space
    instead of the channels of each place, and ties the layer to one image size.

    ## How it is measured
    By the shapes of one forward pass. Numbers that share a mean and a deviation are counted: those
    of a channel in the batch for BatchNorm in training, of a group of channels in a sample for
    GroupNorm, of a channel in a sample for InstanceNorm, of `normalized_shape` for LayerNorm.
    Fewer than `smallest` are reported, but single numbers, which N012 tells. So is a LayerNorm or
    RMSNorm that is given the very output of a convolution, and whose axes do not include the
    channels (axis 1).

    ## How to fix
    Behind a convolution use `nn.GroupNorm(1, channels)`, or move the channels to the end, normalize
    and move them back: `norm(x.movedim(1, -1)).movedim(-1, 1)`. Choose fewer groups, so that each
    has some numbers. Use larger batches with BatchNorm, or GroupNorm in its place.

    ## False alarms
    A model that is tried on a much smaller batch or image than it is trained on has smaller groups
    than it will have. A LayerNorm over space on purpose is reported. Once training runs, N003
    measures whether a small BatchNorm group really is noise.

    ## References
    Wu & He, "Group normalization" (2018). Ba, Kiros & Hinton, "Layer normalization" (2016).
    Ulyanov et al., "Instance normalization" (2016). PyTorch documentation, `torch.nn.LayerNorm`.
    """
    for seen in observations(run, "normalization-layout"):
        group = run.at("probe.norm_group", seen.site)
        if group is None:
            continue
        if 1 < group.last < smallest and (found := _small(seen, int(group.last))):
            yield found
        elif seen.detail.get("channels_first") and _misses_channels(seen):
            yield _beside_channels(seen, int(group.last))


def _integers(seen: Observation, name: str) -> list[int]:
    found = seen.detail.get(name)
    return cast("list[int]", found) if isinstance(found, list) else []


def _shape(seen: Observation) -> str:
    return "x".join(map(str, _integers(seen, "shape")))


def _small(seen: Observation, size: int) -> Evidence | None:
    if seen.text("kind").startswith(("BatchNorm", "SyncBatchNorm")) and not seen.detail.get(
        "training"
    ):
        return None
    message = say(
        "`{module}` ({kind}) normalizes over {size} of its input {shape}",
        module=seen.site.fqn,
        kind=seen.text("kind"),
        size=say("groups of {n} numbers", n=size),
        shape=_shape(seen),
    )
    cause = say("The deviation of so few numbers is mostly chance.")
    fix = say("Choose fewer groups, other axes, or a larger batch.")
    return _evidence(seen, size, message, cause, fix)


def _misses_channels(seen: Observation) -> bool:
    axes = _integers(seen, "normalized_axes")
    return bool(axes) and 1 not in axes and len(_integers(seen, "shape")) > 2


def _beside_channels(seen: Observation, size: int) -> Evidence:
    return _evidence(
        seen,
        size,
        say(
            "`{module}` ({kind}) is given the output of `{source}`, {shape} with the channels on "
            "axis 1, and normalizes along space",
            module=seen.site.fqn,
            kind=seen.text("kind"),
            source=seen.text("source"),
            shape=_shape(seen),
        ),
        say("It takes the last axes, and a convolution has its channels before them."),
        say("norm(x.movedim(1, -1)).movedim(-1, 1)  # or nn.GroupNorm(1, channels)"),
    )


def _evidence(
    seen: Observation, size: int, message: Message, cause: Message, fix: Message
) -> Evidence:
    return Evidence(
        site=seen.site,
        step=STEP,
        message=message,
        numbers={"group": size},
        cause=cause,
        fix=fix,
    )
