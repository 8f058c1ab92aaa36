"""InstanceNorm, whose running statistics, if any, survive a bad batch and checkpointing."""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor, nn
from torch.fx import Proxy
from torch.nn import functional as F
from torch.nn.modules.instancenorm import (
    _InstanceNorm,  # pyright: ignore[reportPrivateUsage]
)

from traindx.messages import Message, say
from traindx.norm.modules.guards import Guarded, as_leaf


class GuardedInstanceNorm(Guarded, _InstanceNorm):
    """What the InstanceNorm layers have in common; see `Guarded`.

    As in torch, `num_batches_tracked` never moves, and momentum=None never updates anything: that
    is warned of where the layer is made. An empty batch, which makes torch's statistics NaN,
    changes nothing.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalize each instance and channel of (N, C, ...) or (C, ...) by itself."""
        if isinstance(input, Proxy):
            return as_leaf(self, input)
        return cast(Any, super()).forward(input)

    # What torch's `forward` calls with (N, C, ...).
    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        buffers, momentum = self._buffers, self.momentum or 0.0  # as BatchNorm, for speed
        mean, var = buffers["running_mean"], buffers["running_var"]
        if self.training and mean is not None and var is not None:
            return self.updating(input, mean, var, None, momentum)
        return self.kernel(input, *self.fixed(), momentum)

    def kernel(
        self, x: Tensor, mean: Tensor | None, var: Tensor | None, momentum: float, /
    ) -> Tensor:
        """Torch's kernel, which updates these statistics (C,) if it updates any."""
        own = self.training or not self.track_running_stats
        return F.instance_norm(x, mean, var, self.weight, self.bias, own, momentum, self.eps)

    def pitfalls(self) -> list[Message]:
        """Of the options it has, in words."""
        found = super().pitfalls()
        if self.track_running_stats and self.momentum is None:
            found.append(
                say(
                    "{layer} has momentum=None, which torch reads as 0: its running statistics "
                    "are never updated. Give a momentum.",
                    layer=type(self).__name__,
                )
            )
        return found


class InstanceNorm1d(GuardedInstanceNorm, nn.InstanceNorm1d):
    """`torch.nn.InstanceNorm1d` whose running statistics cannot be poisoned; see `Guarded`."""


class InstanceNorm2d(GuardedInstanceNorm, nn.InstanceNorm2d):
    """`torch.nn.InstanceNorm2d` whose running statistics cannot be poisoned; see `Guarded`."""


class InstanceNorm3d(GuardedInstanceNorm, nn.InstanceNorm3d):
    """`torch.nn.InstanceNorm3d` whose running statistics cannot be poisoned; see `Guarded`."""
