"""BatchNorm, whose running statistics survive a bad batch, checkpointing and a refused one."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.fx import Proxy
from torch.nn import functional as F
from torch.nn.modules._functions import SyncBatchNorm as _SyncFunction
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

from traindx.messages import say
from traindx.norm.modules.guards import Guarded, as_leaf, become

_FUNCTION: Any = _SyncFunction


class GuardedBatchNorm(Guarded, _BatchNorm):
    """What the BatchNorm layers have in common; see `Guarded`.

    All numbers are torch's, bit for bit, but for momentum=None: torch reads its counter for it,
    and waits for the device; here the cumulative average stays on the device, and may differ by
    its rounding.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalize (N, C, ...) over all axes but C."""
        if isinstance(input, Proxy):
            return as_leaf(self, input)
        self._check_input_dim(input)  # pyright: ignore[reportUnknownMemberType]
        if not self.training:
            return self.kernel(input, *self.fixed(), 0.0)
        buffers, momentum = self._buffers, self.momentum  # for attributes, torch takes its time
        mean, var = buffers["running_mean"], buffers["running_var"]
        if mean is None or var is None or not self.track_running_stats:
            return self.kernel(input, None, None, 0.0)
        tracked = buffers["num_batches_tracked"]
        if momentum is None and tracked is None:
            momentum = 0.0  # without a counter torch leaves the statistics as they are
        return self.updating(input, mean, var, tracked, momentum)

    def kernel(
        self, x: Tensor, mean: Tensor | None, var: Tensor | None, momentum: float, /
    ) -> Tensor:
        """Torch's kernel, which updates these statistics (C,) if it updates any."""
        training, weight, bias, eps = self.training, self.weight, self.bias, self.eps
        if mean is not None and x.numel() > x.size(1) and eps > 0:
            # What `F.batch_norm` would do after its checks, which these are.
            cudnn = torch.backends.cudnn.enabled
            return torch.batch_norm(x, weight, bias, mean, var, training, momentum, eps, cudnn)
        training = training or (mean is None and var is None)
        return F.batch_norm(x, mean, var, weight, bias, training, momentum, eps)


class BatchNorm1d(GuardedBatchNorm, nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d` whose running statistics cannot be poisoned; see `Guarded`."""


class BatchNorm2d(GuardedBatchNorm, nn.BatchNorm2d):
    """`torch.nn.BatchNorm2d` whose running statistics cannot be poisoned; see `Guarded`."""


class BatchNorm3d(GuardedBatchNorm, nn.BatchNorm3d):
    """`torch.nn.BatchNorm3d` whose running statistics cannot be poisoned; see `Guarded`."""


class SyncBatchNorm(GuardedBatchNorm, nn.SyncBatchNorm):
    """`torch.nn.SyncBatchNorm` whose running statistics cannot be poisoned; see `Guarded`.

    What is kept is decided by the statistics of all ranks, so that they all keep the same.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalize (N, C, ...) over all axes but C, and over the ranks in training."""
        if not isinstance(input, Proxy):
            cast(Any, self)._check_non_zero_input_channels(input)
        return super().forward(input)

    def ranks(self) -> int:
        """How many processes share the statistics of a batch: an empty one may be none's."""
        distributed: Any = torch.distributed
        if self.training and distributed.is_available() and distributed.is_initialized():
            return distributed.get_world_size(self._group())
        return 1

    def _group(self) -> Any:
        return self.process_group or cast(Any, torch.distributed).group.WORLD

    def kernel(
        self, x: Tensor, mean: Tensor | None, var: Tensor | None, momentum: float, /
    ) -> Tensor:
        """Torch's kernel, over all ranks in training."""
        ranks = self.ranks()
        if ranks == 1:
            return super().kernel(x, mean, var, momentum)
        if x.device.type == "cpu":
            raise ValueError(
                say("SyncBatchNorm needs its input on an accelerator; it is on the CPU.")
            )
        given = (x, self.weight, self.bias, mean, var, self.eps, momentum)
        return _FUNCTION.apply(*given, self._group(), ranks)

    @classmethod
    def convert_sync_batchnorm(cls, module: nn.Module, process_group: Any = None) -> nn.Module:
        """As torch's, into this class."""
        converted = cast(Any, super()).convert_sync_batchnorm(module, process_group)
        if type(converted) is nn.SyncBatchNorm:
            become(converted, cls)
        return converted
