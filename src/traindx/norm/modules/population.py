"""Mean and variance of everything a BatchNorm layer normalizes, over a whole loader.

Batches are merged by count, mean and squared deviations (Chan et al. 1979), in float64: the exact
statistics of all batches together, of whatever sizes, in one pass and in any number of parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

Gather = Callable[[Tensor], Sequence[Tensor]]
"""A tensor of each rank, in the order of ranks, from this rank's."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Of each channel (C,): elements, mean, and sum of squared deviations, in float64."""

    count: Tensor
    mean: Tensor
    m2: Tensor

    @classmethod
    def none(cls, channels: int, device: torch.device) -> Moments:
        """Of no elements."""
        nothing = torch.zeros(channels, dtype=torch.float64, device=device)
        return cls(nothing.sum(), nothing, nothing.clone())

    @classmethod
    def of(cls, x: Tensor) -> Moments:
        """Of a batch (N, C, ...)."""
        values = x.detach().double().movedim(1, 0).flatten(1)
        count = torch.tensor(float(values.shape[1]), dtype=torch.float64, device=x.device)
        if not values.shape[1]:
            return cls.none(values.shape[0], x.device)
        mean = values.mean(1)
        return cls(count, mean, (values - mean.unsqueeze(1)).square().sum(1))

    def merged(self, other: Moments) -> Moments:
        """Of both together; exact in real arithmetic."""
        count = self.count + other.count
        part = torch.where(count > 0, other.count / count.clamp_min(1), 0.0)
        shift = other.mean - self.mean
        return Moments(
            count, self.mean + shift * part, self.m2 + other.m2 + shift.square() * self.count * part
        )

    @property
    def finite(self) -> bool:
        """Whether all of it is; waits for the device."""
        return bool(self.mean.isfinite().all() and self.m2.isfinite().all())

    @property
    def variance(self) -> Tensor:
        """Biased, as a batch is normalized by."""
        return self.m2 / self.count

    @property
    def unbiased(self) -> Tensor:
        """As torch's running variance takes it."""
        return self.m2 / (self.count - 1)


def over_ranks(moments: Sequence[Moments], gather: Gather) -> list[Moments]:
    """Of the elements of all ranks together: the same bits on each, merged in their order."""
    sizes = [each.mean.numel() for each in moments]
    ranks = [_unpacked(packed, sizes) for packed in gather(_packed(moments))]
    merged = [Moments.none(each.mean.numel(), each.mean.device) for each in moments]
    for rank in ranks:
        merged = [all_before.merged(own) for all_before, own in zip(merged, rank, strict=True)]
    return merged


def _packed(moments: Sequence[Moments]) -> Tensor:
    parts = [part for each in moments for part in (each.count.view(1), each.mean, each.m2)]
    return torch.cat(parts)


def _unpacked(packed: Tensor, sizes: Sequence[int]) -> list[Moments]:
    lengths = [length for size in sizes for length in (1, size, size)]
    parts = cast("tuple[Tensor, ...]", cast(Any, packed).split(lengths))
    triples = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return [Moments(count.sum(), mean, m2) for count, mean, m2 in triples]


def process_group(group: object = None) -> Gather:
    """Gathers over a `torch.distributed` process group; the default one if None."""
    import torch.distributed as dist

    def gather(tensor: Tensor) -> Sequence[Tensor]:
        world = dist.get_world_size(cast(Any, group))
        found = [torch.empty_like(tensor) for _ in range(world)]
        cast(Any, dist).all_gather(found, tensor, group=group)
        return found

    return gather
