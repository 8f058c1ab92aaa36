"""Normalization in torch: layers that guard their statistics, and repairs of trained models.

    from traindx.norm.modules import convert, report

    convert(model)      # torch's layers become ours, in place
    ...                 # train as before
    report(model)       # the layers that have left batches out, and how many

The layers have the names, options, state dicts and numbers of `torch.nn`'s, whose subclasses they
are. Importing this loads nothing; torch comes with the first name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traindx.norm.modules.batch_norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm
    from traindx.norm.modules.conversion import convert, revert
    from traindx.norm.modules.group_norm import GroupNorm
    from traindx.norm.modules.instance_norm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
    from traindx.norm.modules.layer_norm import LayerNorm
    from traindx.norm.modules.rms_norm import RMSNorm
    from traindx.norm.modules.skipped import Skipped, report

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "RMSNorm",
    "Skipped",
    "SyncBatchNorm",
    "convert",
    "report",
    "revert",
]

_HOMES = {
    "BatchNorm1d": "batch_norm",
    "BatchNorm2d": "batch_norm",
    "BatchNorm3d": "batch_norm",
    "GroupNorm": "group_norm",
    "InstanceNorm1d": "instance_norm",
    "InstanceNorm2d": "instance_norm",
    "InstanceNorm3d": "instance_norm",
    "LayerNorm": "layer_norm",
    "RMSNorm": "rms_norm",
    "Skipped": "skipped",
    "SyncBatchNorm": "batch_norm",
    "convert": "conversion",
    "report": "skipped",
    "revert": "conversion",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"`{__name__}` has no attribute `{name}`.")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
