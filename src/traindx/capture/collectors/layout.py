"""Along which axes a normalization works, and along which the layer before it has its features."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]
from torch.nn.modules.instancenorm import _InstanceNorm  # pyright: ignore[reportPrivateUsage]

from traindx.capture.axes import normalized_input
from traindx.capture.collectors import Collector
from traindx.capture.models import TrackedModel

_ROUNDS = 2
"""Measured steps in which it is looked at: layouts do not change."""


class Layout(Collector):
    """Axes from the autograd graph behind a normalization, group sizes from its shapes."""

    def watches(self) -> bool:
        """Whether this is one of the first rounds."""
        return self.recorder.round < _ROUNDS

    def output(
        self, model: TrackedModel, fqn: str, module: nn.Module, tensor: Tensor | None
    ) -> None:
        """Look at what a normalization returns."""
        if tensor is None or not tensor.numel():
            return
        group = _group(module, tensor)
        if group is None:
            return
        self.recorder.scalar(model, fqn, "norm.group", group)
        found = normalized_input(tensor.grad_fn)
        if found is not None and isinstance(module, nn.LayerNorm | _BatchNorm):
            self.recorder.scalar(model, fqn, "norm.feature_axis", float(found.feature_axis))
            own = found.dims - _num_normalized(module) if isinstance(module, nn.LayerNorm) else 1
            self.recorder.scalar(model, fqn, "norm.own_axis", float(own))


def _num_normalized(norm: nn.LayerNorm) -> int:
    return len(norm.normalized_shape)


def _group(module: Any, output: Tensor) -> float | None:
    """Elements that share a mean and a variance; None of what is no normalization."""
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        return float(math.prod(module.normalized_shape))
    if output.dim() < 2:
        return None
    if isinstance(module, _InstanceNorm):
        return output.numel() / (output.shape[0] * output.shape[1])
    if isinstance(module, nn.GroupNorm):
        return output.numel() / (output.shape[0] * module.num_groups)
    if isinstance(module, _BatchNorm) and module.training:
        return output.numel() / output.shape[1]
    return None
