"""RMSNorm: torch's own, which keeps no statistics and subtracts nothing."""

from __future__ import annotations

from torch import nn

from traindx.norm.modules.guards import Warned


class RMSNorm(Warned, nn.RMSNorm):
    """`torch.nn.RMSNorm`, with a warning where it is made with a negative eps."""
