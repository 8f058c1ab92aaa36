"""`summarize`: the statistics of one tensor at memory speed, never synchronizing with a device.

On the CPU the fields are floats at once, since reading costs nothing there and lets a hard case
(large mean, overflow, non-finite) be computed again more carefully. On another device they are
zero-dimensional tensors, which the recorder brings over in one copy at the end of the step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from traindx.records import TensorStats

SAMPLE = 4096
"""Elements looked at one by one, per tensor."""

_BLOCK = 1 << 16
_TYPES = (Tensor, torch.nn.Parameter, torch.nn.Buffer)
_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
_is_functorch = torch._C._functorch.is_functorch_wrapped_tensor  # pyright: ignore

_Number = float | Tensor


class Row(NamedTuple):
    """Sums over one tensor, possibly still on its device.

    Attributes:
        size: Elements.
        shift: What was subtracted from each element before summing.
        total: Sum of the shifted elements.
        square: Sum of their squares.
        min: Least element.
        max: Greatest element.
        nonfinite: Elements that are NaN or infinite; -1 where only `min` and `max` can tell.
        sampled: Elements looked at for `nonzero`.
        nonzero: Elements of the sample that are not 0.
    """

    size: int
    shift: float
    total: _Number
    square: _Number
    min: _Number
    max: _Number
    nonfinite: int = -1
    sampled: int = 0
    nonzero: _Number = 0.0

    def divided(self, scale: _Number) -> Row:
        """The sums of the tensor divided by a positive `scale` (of an AMP loss)."""
        return Row(
            self.size,
            0.0,
            (self.total + self.shift * self.size) / scale,
            (self.square + 2 * self.shift * self.total + self.shift**2 * self.size) / scale**2,
            self.min / scale,
            self.max / scale,
            self.nonfinite,
            self.sampled,
            self.nonzero,
        )

    @property
    def fields(self) -> tuple[_Number, _Number, _Number, _Number, _Number]:
        """What may still be on the device."""
        return self.total, self.square, self.min, self.max, self.nonzero

    def stats(self, fields: tuple[float, float, float, float, float]) -> TensorStats:
        """The statistics, once the fields are on the host."""
        total, square, low, high, nonzero = fields
        offset = total / self.size
        finite = math.isfinite(low) and math.isfinite(high)
        return TensorStats(
            count=self.size,
            mean=self.shift + offset if finite else math.nan,
            m2=max(square - total * offset, 0.0) if finite else math.nan,
            min=low,
            max=high,
            nonfinite=self.nonfinite if self.nonfinite >= 0 else int(not finite),
            sampled=self.sampled,
            zeros=self.sampled - int(nonzero),
        )


def unmeasurable(tensor: Tensor) -> str:
    """Why a tensor cannot be summarized, empty if it can."""
    plain = type(tensor) in _TYPES and tensor.dtype in _DTYPES and tensor.layout is torch.strided
    if plain and tensor.numel() and not (tensor.is_meta or _is_functorch(tensor)):
        return ""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return f"dtype {_dtype(tensor)} is not a floating-point type"
    if tensor.is_complex():
        return f"dtype {_dtype(tensor)} has no order"
    if tensor.layout is not torch.strided:
        return f"layout {str(tensor.layout).removeprefix('torch.')}"
    if tensor.is_meta:
        return "a meta tensor holds no data"
    if tensor.is_nested:
        return "a nested tensor has no single shape"
    if type(tensor) not in _TYPES:
        return f"tensor subclass {type(tensor).__name__}"
    if _is_functorch(tensor):
        return "inside torch.func"
    if tensor.dtype not in _DTYPES:
        return f"dtype {_dtype(tensor)} is too coarse"
    return "empty"


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def summarize(tensor: Tensor, *, sample_at: int | None = None) -> Row:
    """The sums of one measurable tensor.

    Args:
        tensor: Any shape and strides; `unmeasurable` says nothing against it.
        sample_at: Where the sample for zeros starts (the step); None takes none.
    """
    flat = _flatten(tensor.detach())
    sampled, nonzero = _nonzero(flat, tensor.shape, sample_at)
    if flat.dtype in (torch.float16, torch.bfloat16):
        flat = flat.float()  # half-precision sums overflow, half-precision dots round
    low, high = torch.aminmax(flat)
    total, square = flat.sum(), torch.dot(flat, flat)
    row = Row(flat.numel(), 0.0, total, square, low, high, -1, sampled, nonzero)
    return _settled(row, flat) if flat.device.type == "cpu" else row


def _flatten(tensor: Tensor) -> Tensor:
    """All elements in one dimension, in memory order where they are dense, else copied."""
    if tensor.is_contiguous():
        return tensor.view(-1)
    order = sorted(range(tensor.dim()), key=lambda dim: -tensor.stride(dim))
    return tensor.permute(order).reshape(-1)


def _nonzero(flat: Tensor, shape: torch.Size, start: int | None) -> tuple[int, _Number]:
    if start is None:
        return 0, 0.0
    sample = sampled(flat, shape, start)
    return sample.numel(), torch.count_nonzero(sample)


def sampled(flat: Tensor, shape: torch.Size, start: int = 0) -> Tensor:
    """About 4,096 elements as a view, with a stride coprime to every extent.

    A stride that divides an extent would read the same few columns again and again.
    """
    stride = max(1, flat.numel() // SAMPLE)
    while stride > 1 and any(math.gcd(stride, extent) > 1 for extent in shape if extent > 1):
        stride += 1
    return flat[start % stride :: stride]


def _settled(row: Row, flat: Tensor) -> Row:
    """The row as floats; computed again where one pass in this precision is not enough."""
    total, square, low, high, nonzero = (float(field) for field in row.fields)
    if not (math.isfinite(low) and math.isfinite(high)):
        finite = torch.isfinite(flat)
        return _floats(row, total, square, low, high, nonzero, int(flat.numel() - finite.sum()))
    mean = total / row.size
    variance = square / row.size - mean * mean
    if math.isfinite(square) and mean * mean <= 10 * variance:
        return _floats(row, total, square, low, high, nonzero, 0)
    return _centred(row, flat, low, high, nonzero)


def _floats(
    row: Row, total: float, square: float, low: float, high: float, nonzero: float, nonfinite: int
) -> Row:
    return Row(row.size, row.shift, total, square, low, high, nonfinite, row.sampled, nonzero)


def _centred(row: Row, flat: Tensor, low: float, high: float, nonzero: float) -> Row:
    """A second pass around the mean, in blocks, so that no full-size temporary is made."""
    shift = float(flat.sum(dtype=torch.float64)) / row.size
    total = square = 0.0
    for start in range(0, flat.numel(), _BLOCK):
        centred = flat[start : start + _BLOCK].double() - shift
        total += float(centred.sum())
        square += float(torch.dot(centred, centred))
    return Row(row.size, shift, total, square, low, high, 0, row.sampled, nonzero)
