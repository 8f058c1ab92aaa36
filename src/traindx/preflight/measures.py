"""Moments of a tensor, as theory speaks of them."""

from __future__ import annotations

from torch import Tensor

from traindx.signal.layers import Signal

_SAMPLES = 512
"""Samples of a batch over which moments are taken, at most."""


def signal_of(tensor: Tensor) -> Signal:
    """Moments over the first samples (axis 0); of a single one, all is common."""
    values = tensor.detach()[:_SAMPLES].double() if tensor.dim() else tensor.detach().double()
    common = values.mean(0) if values.dim() else values
    return Signal(
        float(values.mean()), float(values.square().mean()), float(common.square().mean())
    )
