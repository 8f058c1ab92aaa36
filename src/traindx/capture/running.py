"""What two snapshots of running statistics tell of the batches normalized between them.

Between them a layer has made k updates,
`new = (1 - momentum)^k old + (1 - (1 - momentum)^k) batch`, so the batch statistics (for k > 1
their weighted mean) follow without touching an activation.

All layers of a model are compared at once: a small operation costs the same for one layer as for
fifty. The formulas are written once, for NumPy's arrays on the CPU, where such an operation is five
times cheaper than torch's, and for torch's tensors elsewhere. On the CPU several steps are compared
at once, too.
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

from traindx.capture.arrays import Views, array, numbers, on_host
from traindx.capture.transfer import to_device
from traindx.stats.samples import doubles

_PRECISION = 1e-3
"""Largest relative error allowed in batch statistics recovered from float buffers."""

_NONE = torch.zeros((), device="cpu")
"""The counter of a layer that has none."""

Values = Any
"""Numbers of double precision: an array on the CPU, else a tensor there."""


class Running(NamedTuple):
    """The buffers of a layer; it may have no counter."""

    mean: Tensor
    var: Tensor
    tracked: Tensor | None

    def fit(self) -> bool:
        """Whether they are as BatchNorm makes them; a user may put others in place."""
        mean, var, count = self
        if count is not None and (count.numel() != 1 or count.device != mean.device):
            return False
        return mean.shape == var.shape and mean.device == var.device


Norms = Sequence[tuple[str, _BatchNorm, Running]]
"""Layers by their names."""


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
        each = [(fqn, of.mean.numel(), norm.momentum, norm.eps) for fqn, norm, of in norms]
        layers, sizes, momenta, epsilons = zip(*each, strict=True)
        mean = norms[0][2].mean
        return cls(layers, sizes, momenta, epsilons, mean.device, mean.dtype)

    def comparable(self, other: Setting) -> bool:
        """Whether the same layers have buffers of the same kind."""
        return self._replace(momenta=(), epsilons=()) == other._replace(momenta=(), epsilons=())


class Snapshot(NamedTuple):
    """The running statistics of several layers, one after another: (sum of C,), and (layers,).

    On the CPU also those of several steps, (steps, sum of C) and (steps, layers); so is all that is
    made of them.
    """

    mean: Values
    var: Values
    tracked: Values


class Batch(NamedTuple):
    """What the layers normalized, and how far rounding may have changed it.

    Attributes:
        mean: Of each channel, (sum of C,).
        var: The same.
        std: Its root, with epsilon.
        far: How many of these deviations the mean lies from 0.
        weight: That of the batch in the second snapshot, (sum of C,).
        rounding: The largest relative error of a channel of each layer, (layers,).
    """

    mean: Values
    var: Values
    std: Values
    far: Values
    weight: Values
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
        self._zero = self._numbers([0.0])
        self._rounding = torch.finfo(setting.dtype).eps
        self.untouched: Values | None = None

    @staticmethod
    def of(setting: Setting, buffer: Tensor) -> Layers:
        """Computing where their buffers are, of which this is one."""
        return OnHost(setting) if on_host(buffer) else OnDevice(setting)

    def follows(self, others: Layers) -> bool:
        """Whether a snapshot of theirs can be compared with a later one of these."""
        return others is self or others.setting.comparable(self.setting)

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
            first = off.reshape(-1, len(self.setting.layers))[0]
            self.untouched = self.xp.where(first == 0, 1.0, 0.0)
        weight = self.xp.where(self._cumulative, 0.0, (1 - self._momentum) ** now.tracked)
        return self.xp.where(now.tracked == 0, self.untouched, weight)

    def counted(self, now: Snapshot) -> dict[str, Values]:
        """What a snapshot tells alone, by layer."""
        return {"tracked": now.tracked, "initial_weight": self.initial_weight(now)}

    def compared(self, old: Snapshot, new: Snapshot) -> Step:
        """What the step between two snapshots has done; NaN where rounding hides it."""
        updates = new.tracked - old.tracked
        batch = self._batch(old, new, self._new_weight(updates, new.tracked))
        known = batch.rounding < _PRECISION
        spread = new.var + self._eps
        gap, noise = self._gap(batch, new, self.xp.sqrt(spread)), self._noise(batch, old)
        by_layer = {
            "updates": updates,
            "running_gap": self.xp.where(known, self._root_mean(gap), math.nan),
            "variance_noise": self.xp.where(known, self._root_mean(noise), math.nan),
            "running_change": self._root_mean((new.mean - old.mean) ** 2 / spread),
        }
        return Step(by_layer, batch)

    def apart(self, first: Batch, second: Batch) -> Values:
        """By layer: how far the means of two batches lie apart, in standard deviations.

        RMS over channels, in those of both batches together; NaN where rounding hides it.
        """
        known = self.xp.maximum(first.rounding, second.rounding) < _PRECISION
        shared = (first.var + second.var) / 2 + self._eps
        distance = self._root_mean((first.mean - second.mean) ** 2 / shared)
        return self.xp.where(known, distance, math.nan)

    def by_channel(self, batch: Batch) -> dict[str, Values]:
        """Statistics of what was normalized, each by its name; NaN where rounding hides them."""
        known = self._relative_error(batch.far, batch.weight) < _PRECISION
        return {
            "batch_mean": self.xp.where(known, batch.mean, math.nan),
            "batch_var": self.xp.where(known, batch.var, math.nan),
        }

    def _new_weight(self, updates: Values, tracked: Values) -> Values:
        """Weight of the step's batches in the new statistics: 0 where there was no update."""
        cumulative = updates / self.xp.where(tracked < 1, 1.0, tracked)
        weight = 1 - (1 - self._momentum) ** updates
        return self.xp.where(self._cumulative, cumulative, weight)

    def _batch(self, old: Snapshot, new: Snapshot, of_layers: Values) -> Batch:
        """The batches between two snapshots, from their weight in the second."""
        weight = self._to_channels(of_layers)
        mean = old.mean + (new.mean - old.mean) / weight
        # A batch's variance cannot be negative; rounding in the buffers can make it so.
        var = self.xp.maximum(old.var + (new.var - old.var) / weight, self._zero)
        std = self.xp.sqrt(var + self._eps)
        far = self.xp.abs(mean) / std
        # The channels of a layer have one weight, so that the farthest has the largest error.
        error = self._relative_error(self._greatest(far), of_layers)
        return Batch(mean, var, std, far, weight, error)

    def _relative_error(self, far: Values, weight: Values) -> Values:
        return self._rounding * (1 + far) / weight

    def _gap(self, batch: Batch, new: Snapshot, std: Values) -> Values:
        """By channel: b^2 + (a - 1)^2.

        Normalizing a batch of mean m and variance v by running statistics instead of its own maps
        the normalized value h to a·h + b (see `norm.running_gap` in `traindx.quantities`).
        """
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
        self._views = Views(array)
        self._room = doubles(2 * sum(setting.sizes) + len(setting.sizes))
        super().__init__(setting)

    def snapshot(self, norms: Norms) -> Snapshot:
        """Their statistics now."""
        counts = [_NONE if of.tracked is None else of.tracked for _, _, of in norms]
        buffers = [of.mean for _, _, of in norms] + [of.var for _, _, of in norms] + counts
        room, half = self._room(), sum(self.setting.sizes)
        self._views.of(None, buffers).copy_to(room)
        values = np.frombuffer(room)
        return Snapshot(values[:half], values[half : 2 * half], values[2 * half :])

    def numbers(self, values: Values) -> Sequence[float | Tensor]:
        """One number of each layer, for the recorder."""
        return numbers(values)

    def tensor(self, values: Values) -> Tensor:
        """Numbers of a layer's channels, for the recorder."""
        return cast(Any, torch).from_numpy(values)

    def _numbers(self, values: Sequence[float]) -> Values:
        return np.array(values, dtype=np.float64)

    def _to_channels(self, values: Values) -> Values:
        return np.repeat(values, self._sizes, axis=-1)

    def _mean(self, values: Values) -> Values:
        return np.add.reduceat(values, self._starts, axis=-1) / self._sizes

    def _greatest(self, values: Values) -> Values:
        return np.maximum.reduceat(values, self._starts, axis=-1)


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
        counts = [of.tracked for _, _, of in norms]
        none = torch.zeros((), dtype=torch.long, device=self.setting.device)
        counts = [none if count is None else count.detach() for count in counts]
        return Snapshot(
            torch.cat([of.mean.detach() for _, _, of in norms]).to(self._wide),
            torch.cat([of.var.detach() for _, _, of in norms]).to(self._wide),
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


def running(norm: _BatchNorm) -> Running | None:
    """Its running statistics, if it has any. Asked for often: torch finds attributes slowly."""
    held: dict[str, Any] = vars(norm)["_buffers"]
    mean, var = held.get("running_mean"), held.get("running_var")
    if mean is None or var is None:
        mean, var = norm.running_mean, norm.running_var
    return (
        None if mean is None or var is None else Running(mean, var, held.get("num_batches_tracked"))
    )
