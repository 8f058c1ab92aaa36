"""BatchNorm's running statistics against the batches that made them, from its buffers alone.

Between two snapshots of the buffers the layer has made k updates,
`new = (1 - momentum)^k old + (1 - (1 - momentum)^k) batch`, so the batch statistics (for k > 1
their weighted mean) follow without touching an activation; it works under torch.compile, too.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

from traindx.capture.collectors import Collector
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder

_PRECISION = 1e-3
"""Largest relative error allowed in batch statistics recovered from float buffers."""


class _Buffers(NamedTuple):
    """The running statistics of one layer: (C,), (C,), ()."""

    mean: Tensor
    var: Tensor
    tracked: Tensor


class Norms(Collector):
    """Modes, updates and gaps of every normalization with running statistics."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._before: dict[tuple[TrackedModel, str], _Buffers] = {}

    def round_starts(self, model: TrackedModel) -> None:
        """Copy the buffers before the step."""
        for fqn, norm in tracking_norms(model):
            mean, var, tracked = _buffers(norm)
            self._before[model, fqn] = _Buffers(mean.clone(), var.clone(), tracked.clone())

    def before_backward(self, model: TrackedModel) -> None:
        """Note the modes in which the forward pass ran."""
        self.recorder.scalar(model, "", "mode.training", float(model.training))
        for fqn, norm in tracking_norms(model):
            self.recorder.scalar(model, fqn, "norm.training", float(norm.training))

    def round_ends(self, model: TrackedModel) -> None:
        """Compare the buffers with those before the step."""
        for fqn, norm in tracking_norms(model):
            now = _buffers(norm)
            self._note(model, fqn, "tracked", now.tracked)
            self._note(model, fqn, "initial_weight", _initial_weight(norm, now.tracked))
            before = self._before.pop((model, fqn), None)
            if before is not None and before.mean.shape == now.mean.shape:
                self._compare(model, fqn, norm, before, now)

    def _compare(
        self, model: TrackedModel, fqn: str, norm: _BatchNorm, old: _Buffers, new: _Buffers
    ) -> None:
        updates = new.tracked - old.tracked
        weight = _new_weight(norm, updates, new.tracked)
        mean = old.mean + (new.mean - old.mean) / weight
        # A batch's variance cannot be negative; rounding in the buffers can make it so.
        var = (old.var + (new.var - old.var) / weight).clamp_min(0)
        change = (new.mean - old.mean) / (new.var + norm.eps).sqrt()
        self._note(model, fqn, "updates", updates)
        self._note(model, fqn, "running_change", _rms(change))
        self._note(model, fqn, "running_gap", _gap(mean, var, new, norm.eps, weight))

    def _note(self, model: TrackedModel, fqn: str, quantity: str, value: Tensor) -> None:
        self.recorder.scalar(model, fqn, f"norm.{quantity}", value)


def tracking_norms(model: TrackedModel) -> list[tuple[str, _BatchNorm]]:
    """The BatchNorm layers of a model that keep running statistics."""
    return [
        (fqn, module)
        for fqn, module in model.modules()
        if isinstance(module, _BatchNorm) and module.running_mean is not None
    ]


def _buffers(norm: _BatchNorm) -> _Buffers:
    mean, var, tracked = norm.running_mean, norm.running_var, norm.num_batches_tracked
    assert mean is not None
    assert var is not None
    count = torch.zeros((), device=mean.device) if tracked is None else tracked.double()
    wide = torch.float32 if mean.element_size() < 4 else mean.dtype
    return _Buffers(mean.detach().to(wide), var.detach().to(wide), count)


def _new_weight(norm: _BatchNorm, updates: Tensor, tracked: Tensor) -> Tensor:
    """Weight of the step's batches in the new statistics; NaN where nothing can be recovered."""
    momentum: float | None = norm.momentum
    if momentum is None:  # cumulative average
        weight = updates / tracked.clamp_min(1)
    else:
        weight = 1 - torch.pow(torch.full_like(updates, 1 - momentum), updates)
    return weight.where(weight > 0, float("nan"))


def _initial_weight(norm: _BatchNorm, tracked: Tensor) -> Tensor:
    momentum: float | None = norm.momentum
    if momentum is None:
        return (tracked == 0).double()
    return torch.pow(torch.full_like(tracked, 1 - momentum), tracked)


def _gap(mean: Tensor, var: Tensor, running: _Buffers, eps: float, weight: Tensor) -> Tensor:
    """RMS over channels of sqrt(b^2 + (a - 1)^2); NaN where rounding would dominate.

    Normalizing a batch of mean m and variance v by running statistics instead of its own maps
    the normalized value h to a·h + b (see `norm.running_gap` in `traindx.quantities`).
    """
    scale = (running.var + eps).rsqrt()
    a = (var + eps).sqrt() * scale
    b = (mean - running.mean) * scale
    gap = _rms(torch.hypot(b, a - 1))
    ratio = (mean.abs() * (var + eps).rsqrt()).amax()
    rounding = torch.finfo(mean.dtype).eps * (1 + ratio) / weight
    return gap.where(rounding < _PRECISION, float("nan"))


def _rms(values: Tensor) -> Tensor:
    return values.square().mean().sqrt()
