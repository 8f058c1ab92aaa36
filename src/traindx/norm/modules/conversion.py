"""torch's layers in a model made ours, and back, in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from torch import nn

from traindx.norm.modules import batch_norm, instance_norm
from traindx.norm.modules.group_norm import GroupNorm
from traindx.norm.modules.guards import become
from traindx.norm.modules.layer_norm import LayerNorm
from traindx.norm.modules.rms_norm import RMSNorm

Kinds = Mapping[type[Any], type[nn.Module]]

_OURS: Kinds = {
    nn.BatchNorm1d: batch_norm.BatchNorm1d,
    nn.BatchNorm2d: batch_norm.BatchNorm2d,
    nn.BatchNorm3d: batch_norm.BatchNorm3d,
    nn.SyncBatchNorm: batch_norm.SyncBatchNorm,
    nn.InstanceNorm1d: instance_norm.InstanceNorm1d,
    nn.InstanceNorm2d: instance_norm.InstanceNorm2d,
    nn.InstanceNorm3d: instance_norm.InstanceNorm3d,
    nn.GroupNorm: GroupNorm,
    nn.LayerNorm: LayerNorm,
    nn.RMSNorm: RMSNorm,
}
_TORCHS: Kinds = {ours: torchs for torchs, ours in _OURS.items()}

Model = TypeVar("Model", bound=nn.Module)


def convert(model: Model) -> Model:
    """Make every normalization layer of torch's in a model one of ours, in place.

    The layers stay the objects they are, with their parameters, buffers, hooks and modes, so an
    optimizer, DDP or `torch.compile` may have seen the model before, the latter not yet have run
    it. Subclasses that are not torch's own are left alone.

    Returns:
        The model itself.
    """
    return _exchanged(model, _OURS)


def revert(model: Model) -> Model:
    """Undo `convert`, for `torch.jit.script` or to hand a model on without traindx, in place."""
    return _exchanged(model, _TORCHS)


def _exchanged(model: Model, kinds: Kinds) -> Model:
    for layer in model.modules():
        if (kind := kinds.get(type(layer))) is not None:
            become(layer, kind)
    return model
