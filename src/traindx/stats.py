"""`summarize` and its like: statistics of one tensor that never synchronize with a device.

On the CPU the fields are floats at once, since reading costs nothing there and lets a hard case
(large mean, overflow, non-finite) be computed again more carefully. On another device they are
zero-dimensional tensors, which the recorder brings over in one copy at the end of the step.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from traindx.messages import say
from traindx.quantities import EXPONENTS
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

    def repeated(self, times: int) -> Row:
        """The sums of the tensor so many times over."""
        nonfinite = self.nonfinite if self.nonfinite < 0 else self.nonfinite * times
        return self._replace(
            size=self.size * times,
            total=self.total * times,
            square=self.square * times,
            nonfinite=nonfinite,
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
    hollow = tensor.is_meta or tensor.is_nested
    if plain and tensor.numel() and not (hollow or _is_functorch(tensor)):
        return ""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return say("dtype {dtype} is not a floating-point type", dtype=_dtype(tensor))
    if tensor.is_complex():
        return say("dtype {dtype} has no order", dtype=_dtype(tensor))
    if tensor.layout is not torch.strided:
        return say("layout {layout}", layout=str(tensor.layout).removeprefix("torch."))
    if tensor.is_meta:
        return say("a meta tensor holds no data")
    if tensor.is_nested:
        return say("a nested tensor has no single shape")
    if type(tensor) not in _TYPES:
        return say("tensor subclass {name}", name=type(tensor).__name__)
    if _is_functorch(tensor):
        return say("inside torch.func")
    if tensor.dtype not in _DTYPES:
        return say("dtype {dtype} is too coarse", dtype=_dtype(tensor))
    return say("empty")


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def summarize(tensor: Tensor, *, sample_at: int | None = None) -> Row:
    """The sums of one measurable tensor.

    Args:
        tensor: Any shape and strides; `unmeasurable` says nothing against it.
        sample_at: Where the sample for zeros starts (the step); None takes none.
    """
    values = _once(tensor.detach())
    row = _row(values, sample_at)
    times = tensor.numel() // values.numel()
    return row if times == 1 else row.repeated(times)


def _row(tensor: Tensor, sample_at: int | None) -> Row:
    flat = _flatten(tensor)
    sampled, nonzero = _nonzero(flat, tensor.shape, sample_at)
    if flat.dtype in (torch.float16, torch.bfloat16):
        flat = flat.float()  # half-precision sums overflow, half-precision dots round
    low, high = torch.aminmax(flat)
    total, square = flat.sum(), torch.dot(flat, flat)
    row = Row(flat.numel(), 0.0, total, square, low, high, -1, sampled, nonzero)
    return _settled(row, flat) if flat.device.type == "cpu" else row


def _once(tensor: Tensor) -> Tensor:
    """A view of each element once: to flatten an expanded tensor would write out all of it."""
    if 0 in tensor.stride():
        for dim, stride in enumerate(tensor.stride()):
            tensor = tensor.narrow(dim, 0, 1) if stride == 0 else tensor
    return tensor


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
    stride = _coprime(flat.numel() // SAMPLE, shape)
    return flat[start % stride :: stride]


def _coprime(stride: int, shape: torch.Size) -> int:
    """The least stride from this one on that is coprime to every extent."""
    stride = max(1, stride)
    while stride > 1 and any(math.gcd(stride, extent) > 1 for extent in shape if extent > 1):
        stride += 1
    return stride


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


# -- what looks at a sample only ------------------------------------------------------------------

_SAMPLES, _FEATURES = 128, 32
"""About how many samples of a batch, and how many entries of each, `batch_share` looks at."""


def batch_share(tensor: Tensor, start: int = 0) -> Tensor:
    """Variance across a batch (axis 0) over the mean square, both averaged over sampled entries.

    In float64 around each entry's own mean, since one pass in float32 reads about -1e-6 where 1e-10
    is true. NaN where every entry looked at is 0.

    Args:
        tensor: (samples, ...); measurable.
        start: Moves the sample of entries.
    """
    batch = tensor.detach()[:: -(-tensor.shape[0] // _SAMPLES)]
    if batch.stride(0):
        batch = _once(batch)
    order = sorted(range(1, batch.dim()), key=lambda dim: -batch.stride(dim))
    rows = batch.permute(0, *order).reshape(batch.shape[0], -1)  # a view if dense
    stride = _coprime(rows.shape[1] // _FEATURES, batch.shape[1:])
    entries = _exact(rows[:, start % stride :: stride])
    centred = (entries - entries.mean(0)).reshape(-1)
    entries = entries.reshape(-1)
    return torch.dot(centred, centred) / torch.dot(entries, entries)


def _exact(tensor: Tensor) -> Tensor:
    # Apple's devices have no float64; around the mean, float32 is good to 1e-13 of the square.
    return tensor.float() if tensor.device.type == "mps" else tensor.double()


def exponents(tensor: Tensor, start: int = 0, scale: _Number | None = None) -> Tensor:
    """How many elements of a sample have each binary exponent, by the bins of `EXPONENTS`.

    Args:
        tensor: Any shape and strides; measurable.
        start: Moves the sample.
        scale: What the tensor was multiplied by (an AMP loss scale).
    """
    values = _once(tensor.detach())
    sample = sampled(_flatten(values), values.shape, start)
    sample = sample.float() if sample.element_size() < 4 else sample
    sample = sample if scale is None else sample / scale
    as_integer, shift, bias = _LAYOUTS[sample.dtype]
    fields = sample.view(as_integer).bitwise_right_shift(shift).bitwise_and_(2 * bias + 1)
    if _on_host(sample):
        zeros = sample.numel() - int(torch.count_nonzero(sample))
        return _binned(torch.bincount(fields, minlength=2 * bias + 2), zeros, bias)
    low, high = EXPONENTS.start, EXPONENTS.stop - 1
    # bincount would wait for the device to learn the largest field.
    place = (fields - bias).clamp(low, high).where(sample.isfinite() & (sample != 0), high + 1)
    each = torch.arange(low, high + 1, device=place.device)
    return (place.unsqueeze(1) == each).sum(0, dtype=torch.float32)


def _on_host(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu"


_LAYOUTS = {torch.float32: (torch.int32, 23, 127), torch.float64: (torch.int64, 52, 1023)}
"""Integer type of the same size, bits of the fraction, and what is added to a binary exponent."""


def _binned(by_field: Tensor, zeros: int, bias: int) -> Tensor:
    """Counts by exponent field, in the bins of `EXPONENTS`.

    Field 0 is that of zeros and of numbers too small for the first bin, the last that of NaN and
    infinity.
    """
    counts: list[float] = cast(Any, by_field).tolist()
    first, last = bias + EXPONENTS.start, bias + EXPONENTS.stop - 1
    bins = counts[first : last + 1]
    bins[0] += sum(counts[:first]) - zeros
    bins[-1] += sum(counts[last + 1 : -1])
    return torch.tensor(bins, dtype=torch.float32)
