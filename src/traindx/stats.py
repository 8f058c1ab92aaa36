"""`summarize` and its like: statistics of one tensor that never synchronize with a device.

On the CPU the fields are floats at once, since reading costs nothing there and lets a hard case
(large mean, overflow, non-finite) be computed again more carefully. On another device they are
zero-dimensional tensors, which the recorder brings over in one copy at the end of the step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from traindx.messages import say
from traindx.quantities import EXPONENTS
from traindx.records import TensorStats

SAMPLE = 4096
"""Elements looked at one by one, per tensor."""

_BLOCK = 1 << 16
"""Elements that one sum of squares takes: in float32 it drifts to 1e-3 over 2 million alike."""

_LARGE = 1 << 24
"""Elements of the largest temporary on a device other than the CPU."""

_TYPES = (Tensor, torch.nn.Parameter, torch.nn.Buffer)
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
_DTYPES = {
    *(torch.float32, torch.float64, torch.bfloat16, torch.float16),
    *(getattr(torch, name) for name in _FLOAT8 if hasattr(torch, name)),
}
_is_functorch = torch._C._functorch.is_functorch_wrapped_tensor  # pyright: ignore

_Number = float | Tensor


class Row(NamedTuple):
    """Sums over one tensor, possibly still on its device.

    Attributes:
        size: Elements.
        total: Sum of the elements.
        m2: Sum of the squares of their distances from the mean.
        min: Least element.
        max: Greatest element.
        nonfinite: Elements that are NaN or infinite; -1 where only `min` and `max` can tell.
        sampled: Elements looked at for `nonzero`.
        nonzero: Elements of the sample that are not 0.
    """

    size: int
    total: _Number
    m2: _Number
    min: _Number
    max: _Number
    nonfinite: int = -1
    sampled: int = 0
    nonzero: _Number = 0.0

    def divided(self, scale: _Number) -> Row:
        """The sums of the tensor divided by a positive `scale` (of an AMP loss)."""
        return self._replace(
            total=self.total / scale,
            m2=self.m2 / scale / scale,
            min=self.min / scale,
            max=self.max / scale,
        )

    def repeated(self, times: int) -> Row:
        """The sums of the tensor so many times over."""
        return self._replace(
            size=self.size * times,
            total=self.total * times,
            m2=self.m2 * times,
            nonfinite=max(self.nonfinite * times, -1),
        )

    @property
    def fields(self) -> tuple[_Number, _Number, _Number, _Number, _Number]:
        """What may still be on the device."""
        return self.total, self.m2, self.min, self.max, self.nonzero

    def stats(self, fields: tuple[float, float, float, float, float]) -> TensorStats:
        """The statistics, once the fields are on the host."""
        total, m2, low, high, nonzero = fields
        finite = math.isfinite(low) and math.isfinite(high)
        return TensorStats(
            count=self.size,
            mean=total / self.size if finite else math.nan,
            m2=m2 if finite else math.nan,
            min=low,
            max=high,
            nonfinite=self.nonfinite if self.nonfinite >= 0 else int(not finite),
            sampled=self.sampled,
            zeros=self.sampled - int(nonzero),
        )


def unmeasurable(tensor: Tensor) -> str:
    """Why a tensor cannot be summarized, empty if it can."""
    # A subclass may do anything when it is asked something, so its class is asked first.
    if type(tensor) not in _TYPES:
        return say("tensor subclass {name}", name=type(tensor).__name__)
    if tensor.dtype not in _DTYPES:
        return _unmeasurable_dtype(tensor.dtype)
    if tensor.layout is not torch.strided:
        return say("layout {layout}", layout=str(tensor.layout).removeprefix("torch."))
    if tensor.is_meta:
        return say("a meta tensor holds no data")
    if tensor.is_nested:
        return say("a nested tensor has no single shape")
    if _is_functorch(tensor):
        return say("inside torch.func")
    if not tensor.numel():
        return say("empty")
    # Sharded training frees parameters like this: to read them raises an error.
    if (tensor.is_cpu or tensor.is_cuda) and not tensor.untyped_storage().nbytes():
        return say("its memory is not there at present")
    return ""


def _unmeasurable_dtype(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    if dtype.is_complex:
        return say("dtype {dtype} has no order", dtype=name)
    if dtype.is_floating_point:
        return say("dtype {dtype} is too coarse", dtype=name)
    return say("dtype {dtype} is not a floating-point type", dtype=name)


def summarize(tensor: Tensor, *, sample_at: int | None = None) -> Row:
    """The sums of one measurable tensor, without a temporary of its size.

    Args:
        tensor: Any shape and strides; `unmeasurable` says nothing against it.
        sample_at: Where the sample for zeros starts (the step); None takes none.
    """
    values = _in_memory_order(tensor.detach())
    sampled, nonzero = 0, 0.0
    if sample_at is not None:
        sample = _wide(_sample(values, sample_at), 2)
        sampled, nonzero = sample.numel(), torch.count_nonzero(sample)
    row_of = _row_on_host if _on_host(values) else _row_on_device
    row = row_of(values, sampled, nonzero)
    times = tensor.numel() // values.numel()
    return row if times == 1 else row.repeated(times)


def _on_host(tensor: Tensor) -> bool:
    return tensor.is_cpu


def _once(tensor: Tensor) -> Tensor:
    """A view of each element once: to flatten an expanded tensor would write out all of it."""
    for dim, stride in enumerate(tensor.stride()):
        tensor = tensor.narrow(dim, 0, 1) if stride == 0 else tensor
    return tensor


def _in_memory_order(tensor: Tensor) -> Tensor:
    """A view of each element once, contiguous if it is dense in any order of its dimensions."""
    if tensor.is_neg():  # as an imaginary part of a conjugate: it is stored with the other sign
        tensor = tensor.resolve_neg()
    if tensor.is_contiguous():
        return tensor
    tensor = _once(tensor)
    return tensor.permute(sorted(range(tensor.dim()), key=lambda dim: -tensor.stride(dim)))


def _pieces(values: Tensor, size: int) -> Iterator[Tensor]:
    """The values in views of at most so many elements each."""
    if values.numel() <= size:
        yield values
    elif values.is_contiguous():
        yield from _split(values.view(-1), size)
    elif (rows := size * values.shape[0] // values.numel()) > 0:
        yield from _split(values, rows)
    else:
        for row in values.unbind():
            yield from _pieces(row, size)


def _split(values: Tensor, size: int) -> tuple[Tensor, ...]:
    return cast(Any, values).split(size)


def _blocks(values: Tensor) -> Iterator[Tensor]:
    """The values in dense, one-dimensional blocks of float32 or float64."""
    for piece in _pieces(values, _BLOCK):
        yield _wide(piece.reshape(-1))


def _wide(tensor: Tensor, least: int = 4) -> Tensor:
    return tensor if tensor.element_size() >= least else tensor.float()


def _row_on_device(values: Tensor, sampled: int, nonzero: _Number) -> Row:
    """Fields that no one has waited for; two passes always, since none can be looked at."""
    size, wide = values.numel(), torch.float32 if values.device.type == "mps" else torch.float64
    pieces = [_wide(piece, 2) for piece in _pieces(values, _LARGE)]
    total = torch.stack([piece.sum(dtype=wide) for piece in pieces]).sum()
    # With a dimension, the mean widens what is of half precision.
    mean = (total / size).to(torch.float64 if values.element_size() > 4 else torch.float32)
    centred = (piece - mean.view(1) for piece in pieces)
    norm = cast(Any, torch.linalg).vector_norm
    m2 = torch.stack([norm(piece, dtype=wide) for piece in centred]).square().sum()
    extremes = [torch.aminmax(piece) for piece in pieces]
    low, high = torch.aminmax(torch.stack([extreme for pair in extremes for extreme in pair]))
    return Row(size, total, m2, low, high, -1, sampled, nonzero)


def _row_on_host(values: Tensor, sampled: int, nonzero: _Number) -> Row:
    """Numbers, computed again where one pass in this precision is not enough."""
    size, nonzero = values.numel(), float(nonzero)
    if values.element_size() == 1:
        return Row(size, *_of_codes(values), sampled, nonzero)
    if size <= _BLOCK:
        values = _wide(values.reshape(-1))
    total, square, low, high = _sums(values)
    if not (math.isfinite(low) and math.isfinite(high)):
        # What is not finite differs from itself.
        bad = sum(int(torch.count_nonzero(block - block)) for block in _blocks(values))
        return Row(size, total, square, low, high, bad, sampled, nonzero)
    if low == high:
        return Row(size, low * size, 0.0, low, high, 0, sampled, nonzero)
    m2 = square - total / size * total
    if not (square <= 11 * m2 and _is_precise(square / size, values.dtype)):
        total, m2 = _centred(values, low, high, total / size)
    return Row(size, total, max(m2, 0.0), low, high, 0, sampled, nonzero)


def _sums(values: Tensor) -> tuple[float, float, float, float]:
    """Sum, sum of squares, least and greatest, in one pass."""
    if values.element_size() > 2 and values.is_contiguous():
        flat = values.view(-1)
        parts = (flat,) if flat.numel() <= _BLOCK else _split(flat, _BLOCK)
        squares = [float(torch.dot(part, part)) for part in parts]
        low, high = torch.aminmax(flat)
        return float(flat.sum()), sum(squares), float(low), float(high)
    # Of a half type the sum overflows and the dot rounds, but the extremes are exact and fast.
    extremes = list(torch.aminmax(values)) if values.is_contiguous() else []
    total = square = 0.0
    for block in _blocks(values):
        total += float(block.sum())
        square += float(torch.dot(block, block))
        if not values.is_contiguous():
            extremes += torch.aminmax(block)
    low, high = torch.aminmax(torch.stack(extremes))
    return total, square, float(low), float(high)


def _of_codes(values: Tensor) -> tuple[float, float, float, float, int]:
    """Sum, centred sum of squares, least, greatest and non-finite of 8-bit floats.

    From how often each of the 256 is there: ten times faster than to widen them, and exact.
    """
    counts = torch.zeros(256, dtype=torch.int64, device="cpu")
    for piece in _pieces(values.view(torch.uint8), _BLOCK):
        counts += torch.bincount(piece.reshape(-1), minlength=256)
    codes = torch.arange(256, dtype=torch.uint8, device="cpu").view(values.dtype).double()
    codes, counts = codes[counts > 0], counts[counts > 0].double()
    total = float(torch.dot(codes, counts))
    m2 = float(torch.dot((codes - total / values.numel()).square(), counts))
    low, high = torch.aminmax(codes)
    return total, m2, float(low), float(high), int(counts[~codes.isfinite()].sum())


def _is_precise(mean_square: float, dtype: torch.dtype) -> bool:
    # Neither overflowed nor vanished in the type that squares were summed in.
    return (0.0 if dtype is torch.float64 else 1e-33) <= mean_square < math.inf


def _centred(values: Tensor, low: float, high: float, near: float) -> tuple[float, float]:
    """Sum, and sum of squares around the mean, by a pass around a number near the mean."""
    size = values.numel()
    near = near if math.isfinite(near) else low / 2 + high / 2
    if values.dtype is not torch.float64:  # around what float32 has, or each difference is off
        shift = float(torch.tensor(near, dtype=torch.float32, device="cpu"))
        total, square = _around(_blocks(values), shift)
        if _is_precise(square / size, torch.float32):
            return shift * size + total, square - total / size * total
    total, square = _around((block.double() for block in _blocks(values)), near)
    return near * size + total, square - total / size * total


def _around(blocks: Iterable[Tensor], shift: float) -> tuple[float, float]:
    total = square = 0.0
    for block in blocks:
        centred = block - shift
        total += float(centred.sum())
        square += float(torch.dot(centred, centred))
    return total, square


# -- what looks at a sample only ------------------------------------------------------------------


def sampled(flat: Tensor, shape: torch.Size, start: int = 0) -> Tensor:
    """About 4,096 elements as a view, with a stride coprime to every extent.

    A stride that divides an extent would read the same few columns again and again.
    """
    stride = _coprime(flat.numel() // SAMPLE, shape)
    return flat[start % stride :: stride]


def _sample(values: Tensor, start: int) -> Tensor:
    """The same of a tensor of any strides."""
    if values.is_contiguous() or values.numel() <= _BLOCK:
        return sampled(values.reshape(-1), values.shape, start)
    stride = _coprime(values.numel() // SAMPLE, values.shape)
    places = torch.arange(start % stride, values.numel(), stride, device=values.device)
    indices: list[Tensor] = []
    for extent in reversed(values.shape):
        indices.insert(0, places % extent)
        places = places.div(extent, rounding_mode="floor")
    return values[tuple(indices)]


def _coprime(stride: int, shape: torch.Size) -> int:
    """The least stride from this one on that is coprime to every extent."""
    stride = max(1, stride)
    while stride > 1 and any(math.gcd(stride, extent) > 1 for extent in shape if extent > 1):
        stride += 1
    return stride


_SAMPLES, _FEATURES = 128, 32
"""How many samples of a batch, and entries of each, `batch_share` looks at, about."""


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
    sample = _wide(_sample(_in_memory_order(tensor.detach()), start))
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
