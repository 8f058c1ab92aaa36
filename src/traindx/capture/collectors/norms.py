"""BatchNorm's running statistics against the batches that made them, from its buffers alone.

Between two snapshots of the buffers the layer has made k updates,
`new = (1 - momentum)^k old + (1 - (1 - momentum)^k) batch`, so the batch statistics (for k > 1
their weighted mean) follow without touching an activation; it works under torch.compile, too.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

from traindx.capture.collectors import Collector
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder

_PRECISION = 1e-3
"""Largest relative error allowed in batch statistics recovered from float buffers."""
_CHANNELS = 512
"""Most channels of a layer whose own statistics are written."""


class _Snapshot(NamedTuple):
    """The running statistics of several layers, one after another: (sum of C,), and (layers,)."""

    layers: tuple[str, ...]
    sizes: tuple[int, ...]
    mean: Tensor
    var: Tensor
    tracked: Tensor


class _Batch(NamedTuple):
    """What the layers normalized: (sum of C,) each, and how far rounding may have changed it."""

    mean: Tensor
    var: Tensor
    std: Tensor
    rounding: Tensor


class Norms(Collector):
    """Modes, updates and gaps of every normalization with running statistics.

    All layers of a model are compared at once: a small operation costs the same for one layer as
    for fifty.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._before: dict[TrackedModel, list[_Snapshot]] = {}
        self._untouched: dict[tuple[TrackedModel, tuple[str, ...]], Tensor] = {}

    def round_starts(self, model: TrackedModel) -> None:
        """Copy the buffers before the step."""
        self._before[model] = [_snapshot(norms) for norms in _alike(model)]

    def before_backward(self, model: TrackedModel) -> None:
        """Note the modes in which the forward pass ran."""
        self.recorder.scalar(model, "", "mode.training", float(model.training))
        for fqn, norm in tracking_norms(model):
            self.recorder.scalar(model, fqn, "norm.training", float(norm.training))

    def round_ends(self, model: TrackedModel) -> None:
        """Compare the buffers with those before the step."""
        before = {(old.layers, old.sizes): old for old in self._before.pop(model, [])}
        for norms in _alike(model):
            new = _snapshot(norms)
            momentum = _per_layer([norm.momentum for _, norm in norms], new)
            self._note(model, new, "tracked", new.tracked)
            key = (model, new.layers)
            if key not in self._untouched:
                self._untouched[key] = _untouched(new)
            weight = _initial_weight(momentum, new.tracked, self._untouched[key])
            self._note(model, new, "initial_weight", weight)
            if self.recorder.wants_vectors:
                self._note_channels(model, new, "running_mean", new.mean)
                self._note_channels(model, new, "running_var", new.var)
            old = before.get((new.layers, new.sizes))
            if old is not None and old.mean.dtype == new.mean.dtype:
                eps = _per_layer([norm.eps for _, norm in norms], new)
                self._compare(model, old, new, momentum, eps)

    def _compare(
        self, model: TrackedModel, old: _Snapshot, new: _Snapshot, momentum: Tensor, eps: Tensor
    ) -> None:
        updates = new.tracked - old.tracked
        weight = _new_weight(momentum, updates, new.tracked)
        per_layer = torch.tensor(new.sizes, device=new.mean.device)
        eps = eps.to(new.mean.dtype).repeat_interleave(per_layer)
        batch = _batch(old, new, weight.repeat_interleave(per_layer), eps)
        worst = torch.segment_reduce(batch.rounding, "max", lengths=per_layer)
        self._note(model, new, "updates", updates)
        for quantity, square in (
            ("running_gap", _gap(batch, new, eps)),
            ("variance_noise", _noise(batch, old, eps)),
        ):
            root = _root_mean(square, per_layer).where(worst < _PRECISION, math.nan)
            self._note(model, new, quantity, root)
        change = (new.mean - old.mean).square() / (new.var + eps)
        self._note(model, new, "running_change", _root_mean(change, per_layer))
        if self.recorder.wants_vectors:
            known = batch.rounding < _PRECISION
            self._note_channels(model, new, "batch_mean", batch.mean.where(known, math.nan))
            self._note_channels(model, new, "batch_var", batch.var.where(known, math.nan))

    def _note_channels(
        self, model: TrackedModel, norms: _Snapshot, quantity: str, values: Tensor
    ) -> None:
        start = 0
        for fqn, size in zip(norms.layers, norms.sizes, strict=True):
            channels = values[start : start + size : -(-size // _CHANNELS)]
            self.recorder.vector(model, fqn, f"norm.{quantity}", channels)
            start += size

    def _note(self, model: TrackedModel, norms: _Snapshot, quantity: str, values: Tensor) -> None:
        for fqn, value in zip(norms.layers, values.unbind(), strict=True):
            self.recorder.scalar(model, fqn, f"norm.{quantity}", value)


def tracking_norms(model: TrackedModel) -> list[tuple[str, _BatchNorm]]:
    """The BatchNorm layers of a model that keep running statistics."""
    return [
        (fqn, module)
        for fqn, module in model.modules()
        if isinstance(module, _BatchNorm) and module.running_mean is not None
    ]


def _alike(model: TrackedModel) -> list[list[tuple[str, _BatchNorm]]]:
    """Its layers by the device and dtype of their buffers."""
    groups: dict[tuple[object, object], list[tuple[str, _BatchNorm]]] = {}
    for fqn, norm in tracking_norms(model):
        mean = cast(Tensor, norm.running_mean)
        groups.setdefault((mean.device, mean.dtype), []).append((fqn, norm))
    return [*groups.values()]


def _snapshot(norms: list[tuple[str, _BatchNorm]]) -> _Snapshot:
    means = [cast(Tensor, norm.running_mean).detach() for _, norm in norms]
    variances = [cast(Tensor, norm.running_var).detach() for _, norm in norms]
    none = torch.zeros((), dtype=torch.long, device=means[0].device)
    counts = [none if (n := norm.num_batches_tracked) is None else n.detach() for _, norm in norms]
    mean, var = torch.cat(means), torch.cat(variances)
    if mean.element_size() < 4:
        mean, var = mean.float(), var.float()
    layers, sizes = tuple(fqn for fqn, _ in norms), tuple(mean.numel() for mean in means)
    return _Snapshot(layers, sizes, mean, var, torch.stack(counts).double())


def _per_layer(values: list[float | None], norms: _Snapshot) -> Tensor:
    """One setting of each layer; NaN stands for None."""
    numbers = [math.nan if value is None else value for value in values]
    return torch.tensor(numbers, dtype=torch.float64, device=norms.mean.device)


def _new_weight(momentum: Tensor, updates: Tensor, tracked: Tensor) -> Tensor:
    """Weight of the step's batches in the new statistics: 0 where there was no update."""
    cumulative = updates / tracked.clamp_min(1)
    return torch.where(momentum.isnan(), cumulative, 1 - torch.pow(1 - momentum, updates))


def _untouched(norms: _Snapshot) -> Tensor:
    """1 for layers whose statistics are the initial 0 and 1, 0 for others.

    Asked once a layer, since it matters only as long as nothing has been counted.
    """
    sizes = torch.tensor(norms.sizes, device=norms.mean.device)
    off = norms.mean.abs() + (norms.var - 1).abs()
    return (torch.segment_reduce(off, "max", lengths=sizes) == 0).double()


def _initial_weight(momentum: Tensor, tracked: Tensor, untouched: Tensor) -> Tensor:
    """(1 - momentum)^tracked; 0 for statistics loaded without their counter."""
    weight = torch.where(momentum.isnan(), 0.0, torch.pow(1 - momentum, tracked))
    return torch.where(tracked == 0, untouched, weight)


def _batch(old: _Snapshot, new: _Snapshot, weight: Tensor, eps: Tensor) -> _Batch:
    """The batches between two snapshots, from their weight in the second."""
    weight = weight.to(new.mean.dtype)
    mean = old.mean + (new.mean - old.mean) / weight
    # A batch's variance cannot be negative; rounding in the buffers can make it so.
    var = (old.var + (new.var - old.var) / weight).clamp_min(0)
    std = (var + eps).sqrt()
    rounding = torch.finfo(mean.dtype).eps * (1 + (mean / std).abs()) / weight
    return _Batch(mean, var, std, rounding)


def _gap(batch: _Batch, new: _Snapshot, eps: Tensor) -> Tensor:
    """By channel: b^2 + (a - 1)^2.

    Normalizing a batch of mean m and variance v by running statistics instead of its own maps
    the normalized value h to a·h + b (see `norm.running_gap` in `traindx.quantities`).
    """
    scale = (new.var + eps).rsqrt()
    return ((batch.mean - new.mean) * scale).square() + (batch.std * scale - 1).square()


def _noise(batch: _Batch, old: _Snapshot, eps: Tensor) -> Tensor:
    """By channel: the square of the batch's variance against the running one before it."""
    return ((batch.var - old.var) / (old.var + eps)).square()


def _root_mean(square: Tensor, sizes: Tensor) -> Tensor:
    """By layer."""
    return torch.segment_reduce(square, "mean", lengths=sizes).sqrt()
