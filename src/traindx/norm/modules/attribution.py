"""How much of the difference between running and batch statistics each layer makes.

One layer at a time is switched from running to batch statistics. With D the change of the model's
output when all are, and d_i when layer i alone is, its share is <d_i, D> / <D, D>; what the shares
leave of 1 is the layers' interaction.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

from traindx.errors import UsageError
from traindx.messages import say
from traindx.norm.modules.connections import outputs
from traindx.trial import unchanged, undrawn

_NOISE = 1e-4
"""Part of the change, squared, that two evaluations in the same state may differ by."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who changes the output.

    Attributes:
        change: RMS of the change of the output, over the RMS of the output in evaluation.
        shares: Each layer's share of it.
        rest: What the shares leave of 1; 0 where nothing changes.
    """

    change: float
    shares: dict[str, float]
    rest: float


def attribute(
    model: nn.Module, inputs: Sequence[Any], layers: dict[str, _BatchNorm]
) -> Attribution:
    """Try every layer; the model comes back as it was.

    Raises:
        UsageError: The model fails, as BatchNorm does on a single element; its output is not
            finite; or it draws numbers that torch's seed does not repeat.
    """
    with unchanged(model), torch.no_grad():
        model.eval()
        base = _vector(model, inputs)
        whole = _change(model, inputs, base, list(layers.values()))
        energy = float(whole @ whole)
        if not math.isfinite(energy):
            raise UsageError(say("The model's output on the batch is not finite."))
        if not energy > 0:
            return Attribution(0.0, dict.fromkeys(layers, 0.0), 0.0)
        again = _vector(model, inputs) - base
        if float(again @ again) > _NOISE * energy:
            raise UsageError(say("The model gives other outputs each time it is evaluated."))
        shares = {
            fqn: float(_change(model, inputs, base, [layer]) @ whole) / energy
            for fqn, layer in layers.items()
        }
    size = float(base @ base)
    change = (energy / size) ** 0.5 if size else float("inf")
    return Attribution(change, shares, 1 - sum(shares.values()))


def _change(
    model: nn.Module, inputs: Sequence[Any], base: Tensor, layers: Sequence[_BatchNorm]
) -> Tensor:
    with _by_batch(layers):
        return _vector(model, inputs) - base


@contextmanager
def _by_batch(layers: Sequence[_BatchNorm]) -> Generator[None]:
    """Normalize by the batch, and leave the running statistics alone."""
    tracked = [layer.track_running_stats for layer in layers]
    for layer in layers:
        layer.training, layer.track_running_stats = True, False
    try:
        yield
    finally:
        for layer, tracks in zip(layers, tracked, strict=True):
            layer.training, layer.track_running_stats = False, tracks


def _vector(model: nn.Module, inputs: Sequence[Any]) -> Tensor:
    """All real outputs, one after another, in float64; each time from the same random state."""
    with undrawn():
        made = outputs(model, inputs)
    parts = [o.double().reshape(-1) for o in made if o.is_floating_point()]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)
