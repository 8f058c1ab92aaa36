"""LayerNorm: torch's own, which keeps no statistics and accumulates exactly."""

from __future__ import annotations

from torch import nn

from traindx.norm.modules.guards import Warned


class LayerNorm(Warned, nn.LayerNorm):
    """`torch.nn.LayerNorm`, with a warning where it is made with a negative eps."""
