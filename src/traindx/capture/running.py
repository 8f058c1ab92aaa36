"""What two snapshots of running statistics tell of the batches normalized between them.

Between them a layer has made k updates,
`new = (1 - momentum)^k old + (1 - (1 - momentum)^k) batch`, so the batch statistics (for k > 1
their weighted mean) follow without touching an activation.

All layers of a model are compared at once: a small operation costs the same for one layer as for
fifty. The formulas are written once, for NumPy's arrays on the CPU, where such an operation is five
times cheaper than torch's, and for torch's tensors elsewhere.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm  # pyright: ignore[reportPrivateUsage]

from traindx.capture.arrays import array, numbers, on_host
from traindx.capture.transfer import to_device

_PRECISION = 1e-3
"""Largest relative error allowed in batch statistics recovered from float buffers."""

Values = Any
"""Numbers of double precision, one-dimensional: an array on the CPU, else a tensor there."""
Norms = Sequence[tuple[str, _BatchNorm]]


class Setting(NamedTuple):
    """What hardly ever changes about several layers whose buffers are of one device and type."""

    layers: tuple[str, ...]
    sizes: tuple[int, ...]
    momenta: tuple[float | None, ...]
    epsilons: tuple[float, ...]
    device: torch.device
    dtype: torch.dtype

    @classmethod
    def of(cls, norms: Norms) -> Setting:
        """That of layers that are alike."""
        means = [running_mean(norm) for _, norm in norms]
        return cls(
            tuple(fqn for fqn, _ in norms),
            tuple(mean.numel() for mean in means),
            tuple(norm.momentum for _, norm in norms),
            tuple(norm.eps for _, norm in norms),
            means[0].device,
            means[0].dtype,
        )

    def comparable(self, other: Setting) -> bool:
        """Whether the same layers have buffers of the same kind."""
        return self._replace(momenta=(), epsilons=()) == other._replace(momenta=(), epsilons=())


class Snapshot(NamedTuple):
    """The running statistics of several layers, one after another: (sum of C,), and (layers,)."""

    mean: Values
    var: Values
    tracked: Values


class Batch(NamedTuple):
    """What the layers normalized: (sum of C,) each, and how far rounding may have changed it."""

    mean: Values
    var: Values
    std: Values
    rounding: Values


class Step(NamedTuple):
    """What a step has done: by layer, each by its name, and what the layers normalized in it."""

    by_layer: dict[str, Values]
    batch: Batch


class Layers(ABC):
    """Several normalizations whose buffers are of one device and type, and what to compute there.

    Attributes:
        setting: Theirs.
        untouched: 1 for layers whose statistics were the initial 0 and 1 when first seen, else 0.
    """

    xp: Any

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        momenta = [math.nan if momentum is None else momentum for momentum in setting.momenta]
        self._momentum = self._numbers(momenta)
        self._cumulative = self.xp.isnan(self._momentum)
        self._eps = self._to_channels(self._numbers(setting.epsilons))
        self._rounding = torch.finfo(setting.dtype).eps
        self.untouched: Values | None = None

    @staticmethod
    def of(setting: Setting, buffer: Tensor) -> Layers:
        """Computing where their buffers are, of which this is one."""
        return OnHost(setting) if on_host(buffer) else OnDevice(setting)

    @abstractmethod
    def snapshot(self, norms: Norms) -> Snapshot:
        """Their statistics now."""

    @abstractmethod
    def numbers(self, values: Values) -> Sequence[float | Tensor]:
        """One number of each layer, for the recorder."""

    @abstractmethod
    def tensor(self, values: Values) -> Tensor:
        """Numbers of a layer's channels, for the recorder."""

    @abstractmethod
    def _numbers(self, values: Sequence[float]) -> Values: ...

    @abstractmethod
    def _to_channels(self, values: Values) -> Values:
        """Each layer's number for each of its channels."""

    @abstractmethod
    def _mean(self, values: Values) -> Values:
        """Over the channels of each layer."""

    @abstractmethod
    def _greatest(self, values: Values) -> Values:
        """Of the channels of each layer."""

    def initial_weight(self, now: Snapshot) -> Values:
        """(1 - momentum)^tracked; 0 for statistics loaded without their counter, by layer."""
        if self.untouched is None:  # matters only as long as nothing has been counted
            off = self._greatest(self.xp.abs(now.mean) + self.xp.abs(now.var - 1))
            self.untouched = self.xp.where(off == 0, 1.0, 0.0)
        weight = self.xp.where(self._cumulative, 0.0, (1 - self._momentum) ** now.tracked)
        return self.xp.where(now.tracked == 0, self.untouched, weight)

    def compared(self, old: Snapshot, new: Snapshot) -> Step:
        """What the step between two snapshots has done; NaN where rounding hides it."""
        updates = new.tracked - old.tracked
        batch = self._batch(old, new, self._to_channels(self._new_weight(updates, new.tracked)))
        known = self._greatest(batch.rounding) < _PRECISION
        change = (new.mean - old.mean) ** 2 / (new.var + self._eps)
        by_layer = {
            "updates": updates,
            "running_gap": self.xp.where(known, self._root_mean(self._gap(batch, new)), math.nan),
            "variance_noise": self.xp.where(
                known, self._root_mean(self._noise(batch, old)), math.nan
            ),
            "running_change": self._root_mean(change),
        }
        return Step(by_layer, batch)

    def apart(self, first: Batch, second: Batch) -> Values:
        """By layer: how far the means of two batches lie apart, in standard deviations.

        RMS over channels, in those of both batches together; NaN where rounding hides it.
        """
        known = self.xp.maximum(first.rounding, second.rounding)
        shared = (first.var + second.var) / 2 + self._eps
        distance = self._root_mean((first.mean - second.mean) ** 2 / shared)
        return self.xp.where(self._greatest(known) < _PRECISION, distance, math.nan)

    def by_channel(self, batch: Batch) -> dict[str, Values]:
        """Statistics of what was normalized, each by its name; NaN where rounding hides them."""
        known = batch.rounding < _PRECISION
        return {
            "batch_mean": self.xp.where(known, batch.mean, math.nan),
            "batch_var": self.xp.where(known, batch.var, math.nan),
        }

    def _new_weight(self, updates: Values, tracked: Values) -> Values:
        """Weight of the step's batches in the new statistics: 0 where there was no update."""
        cumulative = updates / self.xp.where(tracked < 1, 1.0, tracked)
        weight = 1 - (1 - self._momentum) ** updates
        return self.xp.where(self._cumulative, cumulative, weight)

    def _batch(self, old: Snapshot, new: Snapshot, weight: Values) -> Batch:
        """The batches between two snapshots, from their weight in the second."""
        mean = old.mean + (new.mean - old.mean) / weight
        # A batch's variance cannot be negative; rounding in the buffers can make it so.
        var = old.var + (new.var - old.var) / weight
        var = self.xp.where(var < 0, 0.0, var)
        std = self.xp.sqrt(var + self._eps)
        rounding = self._rounding * (1 + self.xp.abs(mean) / std) / weight
        return Batch(mean, var, std, rounding)

    def _gap(self, batch: Batch, new: Snapshot) -> Values:
        """By channel: b^2 + (a - 1)^2.

        Normalizing a batch of mean m and variance v by running statistics instead of its own maps
        the normalized value h to a·h + b (see `norm.running_gap` in `traindx.quantities`).
        """
        std = self.xp.sqrt(new.var + self._eps)
        return ((batch.mean - new.mean) / std) ** 2 + (batch.std / std - 1) ** 2

    def _noise(self, batch: Batch, old: Snapshot) -> Values:
        """By channel: the square of the batch's variance against the running one before it."""
        return ((batch.var - old.var) / (old.var + self._eps)) ** 2

    def _root_mean(self, square: Values) -> Values:
        return self.xp.sqrt(self._mean(square))


class OnHost(Layers):
    """In NumPy."""

    xp = np

    def __init__(self, setting: Setting) -> None:
        self._sizes = np.array(setting.sizes)
        self._starts = np.cumsum(self._sizes) - self._sizes
        super().__init__(setting)

    def snapshot(self, norms: Norms) -> Snapshot:
        """Their statistics now."""
        return Snapshot(
            np.concatenate([array(running_mean(norm)) for _, norm in norms], dtype=np.float64),
            np.concatenate([array(running_var(norm)) for _, norm in norms], dtype=np.float64),
            self._numbers([0.0 if (n := tracked(norm)) is None else float(n) for _, norm in norms]),
        )

    def numbers(self, values: Values) -> Sequence[float | Tensor]:
        """One number of each layer, for the recorder."""
        return numbers(values)

    def tensor(self, values: Values) -> Tensor:
        """Numbers of a layer's channels, for the recorder."""
        return cast(Any, torch).from_numpy(values)

    def _numbers(self, values: Sequence[float]) -> Values:
        return np.array(values, dtype=np.float64)

    def _to_channels(self, values: Values) -> Values:
        return np.repeat(values, self._sizes)

    def _mean(self, values: Values) -> Values:
        return np.add.reduceat(values, self._starts) / self._sizes

    def _greatest(self, values: Values) -> Values:
        return np.maximum.reduceat(values, self._starts)


class OnDevice(Layers):
    """In torch, without waiting for the device: the library is told what it would ask it."""

    xp = torch

    def __init__(self, setting: Setting) -> None:
        # Apple's devices have no float64.
        self._wide = torch.float32 if setting.device.type == "mps" else torch.float64
        self._sizes = to_device(setting.sizes, torch.long, setting.device)
        super().__init__(setting)

    def snapshot(self, norms: Norms) -> Snapshot:
        """Their statistics now."""
        counts = [tracked(norm) for _, norm in norms]
        none = torch.zeros((), dtype=torch.long, device=self.setting.device)
        counts = [none if count is None else count.detach() for count in counts]
        return Snapshot(
            torch.cat([running_mean(norm).detach() for _, norm in norms]).to(self._wide),
            torch.cat([running_var(norm).detach() for _, norm in norms]).to(self._wide),
            torch.stack(counts).to(self._wide),
        )

    def numbers(self, values: Values) -> Sequence[float | Tensor]:
        """One number of each layer, for the recorder."""
        return values.unbind()

    def tensor(self, values: Values) -> Tensor:
        """Numbers of a layer's channels, for the recorder."""
        return values

    def _numbers(self, values: Sequence[float]) -> Values:
        return to_device(values, self._wide, self.setting.device)

    def _to_channels(self, values: Values) -> Values:
        return values.repeat_interleave(self._sizes, output_size=sum(self.setting.sizes))

    def _mean(self, values: Values) -> Values:
        return self._reduced(values, "mean")

    def _greatest(self, values: Values) -> Values:
        return self._reduced(values, "max")

    def _reduced(self, values: Values, how: str) -> Values:
        return torch.segment_reduce(values, how, lengths=self._sizes, unsafe=True)


def running_mean(norm: _BatchNorm) -> Tensor:
    """The buffer, of a layer that has it."""
    return cast(Tensor, norm.running_mean)


def running_var(norm: _BatchNorm) -> Tensor:
    """The buffer, of a layer that has it."""
    return cast(Tensor, norm.running_var)


def tracked(norm: _BatchNorm) -> Tensor | None:
    """The counter, if it has one."""
    return norm.num_batches_tracked
