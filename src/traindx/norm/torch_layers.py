"""The specification of a live torch layer, read off its class's name and its attributes.

torch is not imported: a layer is known by what it says of itself, as a subclass or a drop-in does.
"""

from __future__ import annotations

from typing import Any

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm.choices import Estimator
from traindx.norm.presets import preset
from traindx.norm.spec import NormSpec


def spec_of(layer: Any) -> NormSpec:
    """What a `torch.nn` normalization layer computes, subclasses and drop-ins included."""
    for base in type(layer).__mro__:
        found = _by_name(base.__name__, layer)
        if found is not None:
            return found
    raise ArgumentError(
        say(
            "A specification is known for torch's normalization layers; got "
            "{given}. Name a preset instead.",
            given=type(layer).__name__,
        )
    )


def _by_name(name: str, layer: Any) -> NormSpec | None:
    kind = name.removeprefix("Lazy").rstrip("123d")
    match kind:
        case "BatchNorm" | "SyncBatchNorm" | "_BatchNorm":
            return preset("torch.BatchNorm2d", eps=layer.eps, momentum=layer.momentum)
        case "InstanceNorm" | "_InstanceNorm":
            tracked = Estimator.UNBIASED if layer.track_running_stats else None
            return preset(
                "torch.InstanceNorm2d", eps=layer.eps, momentum=layer.momentum, variance=tracked
            )
        case "LayerNorm" | "RMSNorm":
            ndim = len(layer.normalized_shape)
            return preset(f"torch.{kind}", normalized_ndim=ndim, eps=layer.eps)
        case "GroupNorm":
            return preset("torch.GroupNorm", num_groups=layer.num_groups, eps=layer.eps)
        case "LocalResponseNorm":
            chosen = {key: getattr(layer, key) for key in ("size", "alpha", "beta", "k")}
            return preset("torch.LocalResponseNorm", **chosen)
        case _:
            return None
