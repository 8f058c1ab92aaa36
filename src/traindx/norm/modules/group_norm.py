"""GroupNorm, exact in every memory format."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.fx import Proxy
from torch.nn import functional as F

from traindx.norm.modules.guards import Warned, as_leaf

_HALVES = (torch.float16, torch.bfloat16)


class GroupNorm(Warned, nn.GroupNorm):
    """`torch.nn.GroupNorm`, right for channels_last on the CPU.

    There torch takes E[x²] - E[x]² for the variance, forward and backward, and loses it where the
    mean is large: at a mean of 1000 standard deviations, float32 is wrong by 0.3, at 10 000 by
    1000. Here each group's mean is taken off before (half precision passes through float32): by
    what a group is shifted does not matter to its output or gradients, and what is left has no
    mean to lose a variance in. That is more exact than torch's contiguous kernel, too, whose error
    grows with the mean. All else is torch's, bit for bit, and so is every other memory format.

    It costs 1.5 times torch's channels_last kernel, forward and backward in float32, and 2.1 times
    for 512 elements (`benchmarks/norm_modules.py`), and memory for one more tensor of the input's
    size. A contiguous copy would cost 2 to 8 times.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalize (N, C, ...) over each group of channels and all further axes."""
        if isinstance(input, Proxy):
            return as_leaf(self, input)
        if not _by_one_pass(input) or input.size(1) % self.num_groups:
            return super().forward(input)
        x, weight, bias = input, self.weight, self.bias
        if input.dtype in _HALVES:
            x, weight, bias = input.float(), _float(weight), _float(bias)
        y = F.group_norm(x - self._means(x.detach()), self.num_groups, weight, bias, self.eps)
        return y.to(input.dtype)

    def _means(self, x: Tensor) -> Tensor:
        """Of each group, for each channel: (N, C, 1, ...); 0 where it is not finite."""
        count, size = self.num_groups, x.size(1) // self.num_groups
        channels = x.mean(tuple(range(2, x.dim())))  # N C
        groups = channels.reshape(-1, count, size).mean(2, keepdim=True)  # N G 1
        means = torch.nan_to_num(groups, 0.0, 0.0, 0.0).expand(-1, -1, size)
        return means.reshape(*x.shape[:2], *[1] * (x.dim() - 2))


def _float(parameter: Tensor | None) -> Tensor | None:
    return None if parameter is None else parameter.float()


def _by_one_pass(x: Tensor) -> bool:
    """Whether torch would take its channels_last kernel."""
    if x.device.type != "cpu" or x.dim() not in (4, 5):
        return False
    if not 0 < x.stride(1) <= x.stride(-1):
        return False
    # Channels vary fastest, then the last axis, then the one before, and the batch slowest.
    order = (1, *range(x.dim() - 1, 1, -1), 0)
    return all(
        x.stride(inner) * x.size(inner) <= x.stride(outer) for inner, outer in pairwise(order)
    )
