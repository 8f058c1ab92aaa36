"""Statistics of tensors in the CPU's memory, at about the speed of that memory.

`native` takes all sums in one pass, where it was compiled. What follows is for what it cannot read,
and for where there was no compiler. NumPy looks at the memory of the tensor itself, and there a
call costs half of one of torch's, which counts for small tensors. Large ones are read once, in
blocks that stay in the cache while sum and sum of squares are taken; torch sums such a block three
times faster than NumPy. Least and greatest would cost as much again, so of large ones they are
those of some stretches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from traindx.quantities import EXPONENTS
from traindx.stats import eight_bits, native
from traindx.stats.memory import (
    BLOCK,
    SAMPLE,
    Array,
    batch_sample,
    in_memory_order,
    in_numpy,
    pieces,
    sample,
    sampled,
    split,
    stretches,
    wide,
)
from traindx.stats.rows import Number, Row

_Sums = tuple[float, float, float, float]
"""Sum, sum of squares, least and greatest."""

_SMALL = 2 * SAMPLE
"""Elements from which on torch sums faster than NumPy, and a sample is not all.

NumPy's products of more than 10,000 elements would also wake threads that torch knows nothing of.
"""

_TOGETHER = 1024
"""Elements of the largest tensor that is copied to be measured together with others.

With 50 of them one costs 2.7 us instead of 6.4 (16 elements), 4.0 instead of 7.1 (1,024), and not
less at 4,096.
"""

_LARGE = 1 << 15
"""Elements from which on least and greatest, and zeros, are those of some stretches."""

_LEAST_SHARE = 1 / 3
"""Of the mean square that the variance must be: below it, a sum of squares in float32 might put it
off by more than 1e-4.
"""

_VANISHING = 1e-33
"""Mean square below which squares may have been too small for float32."""

_PARALLEL = 1 << 18
"""Elements from which on a pass for each number in several threads of torch is faster than one.

Measured with two threads: 1.3 times at 2^18 and at 2^21 elements, slower at 2^16.
"""

_FEW_THREADS = 4
"""Up to which the one pass of `native` is taken, in one thread; not measured beyond two."""

_ROWS = 1024
"""Elements of one sum of squares."""

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)

# The types of these are known in part only.
_least: Callable[..., float] = cast(Any, np.minimum).reduce
_greatest: Callable[..., float] = cast(Any, np.maximum).reduce
_sum: Callable[..., Any] = cast(Any, np.add).reduce
_dot: Callable[[Tensor, Tensor], Tensor] = torch.dot
_tensor_of: Callable[[Array], Tensor] = cast(Any, torch).from_numpy


def row(tensor: Tensor, sample_at: int | None, start: int = 0) -> Row:
    """The sums of a tensor, computed again where one pass in its precision is not enough."""
    size = tensor.numel()
    found = _in_one_pass(tensor, size, zeros=sample_at is not None)
    if found is not None:
        return found
    tensor = tensor.detach()
    if size > _LARGE and _is_dense(tensor) and not tensor.is_neg():
        return _of_large(tensor, start, zeros=sample_at is not None)
    return _of_any(tensor, sample_at, start)


def _in_one_pass(tensor: Tensor, size: int, *, zeros: bool) -> Row | None:
    """The row of a tensor that `native` reads: exact extremes, and every zero counted.

    None of another, and of one that several threads read faster.
    """
    if size >= _PARALLEL and torch.get_num_threads() > _FEW_THREADS:
        return None
    found = native.row(tensor, size, zeros=zeros)
    if found is None or not found.nonfinite:
        return found
    moments = float(found.total), math.nan
    return _of_hard(tensor.detach(), moments, found.sampled, float(found.nonzero))


# Numbers that are not finite, or whose squares are not, are no mistake here; and a user may have
# asked NumPy to raise an error for tiny ones whose squares vanish.
@np.errstate(all="ignore")
def _of_any(tensor: Tensor, sample_at: int | None, start: int) -> Row:
    size = tensor.numel()
    if size > (_SMALL if native.FUNCTIONS else BLOCK) or tensor.element_size() == 1:
        return _in_blocks(tensor, sample_at, start)
    flat = _flat(tensor)
    looked_at, nonzero = 0, 0.0
    if sample_at is not None:
        some = flat if size < _SMALL else sampled(flat, tensor.shape, sample_at)
        looked_at, nonzero = some.size, _nonzero(some)
    return _row(size, _sums(flat), partial(_only, flat), looked_at, nonzero)


@np.errstate(all="ignore")
def rows(tensors: Sequence[Tensor], start: int = 0) -> list[Row]:
    """A row of each; those of small tensors from one array of many, with a fifth of the calls."""
    found: dict[int, Row] = {}
    small: dict[np.dtype[Any], list[tuple[int, Array]]] = {}
    for i, tensor in enumerate(tensors):
        size = tensor.numel()
        read = _in_one_pass(tensor, size, zeros=False)
        if read is not None:
            found[i] = read
        elif size > _TOGETHER or tensor.element_size() == 1:
            found[i] = row(tensor, None, start)
        else:
            flat = _flat(tensor.detach())
            small.setdefault(flat.dtype, []).append((i, flat))
    for flats in small.values():
        for first in range(0, len(flats), BLOCK // _TOGETHER):
            some = flats[first : first + BLOCK // _TOGETHER]
            for (i, flat), sums in zip(some, _sums_of_each(some), strict=True):
                found[i] = _row(flat.size, sums, partial(_only, flat), 0, 0.0)
    return [found[i] for i in range(len(tensors))]


def _of_large(tensor: Tensor, start: int, *, zeros: bool) -> Row:
    """The row of a dense tensor: all of it for the sums, some stretches of it for the rest."""
    # Called where a training has left nothing of ours in the processor's caches, which makes each
    # line ten times as slow: so there are few.
    flat = tensor.view(-1)
    size = flat.numel()
    total, square = _moments(flat)
    some = stretches(in_numpy(flat), start)
    low, high = float(_least(some, None)), float(_greatest(some, None))
    looked_at, nonzero = (some.size, _nonzero(some)) if zeros else (0, 0.0)
    m2 = square - total / size * total
    # Some element is at least as large as the RMS: extremes that do not reach it are not the
    # tensor's. So it is where few elements are not 0, as in gradients of embeddings.
    reach = high if high > -low else -low
    reached = reach * reach * size >= square >= _VANISHING * size
    if reached and m2 >= _LEAST_SHARE * square and square < math.inf and low < high:
        return Row(size, total, m2, low, high, 0, looked_at, nonzero)
    return _of_hard(tensor, (total, square), looked_at, nonzero)


@np.errstate(all="ignore")
def _of_hard(tensor: Tensor, moments: tuple[float, float], looked_at: int, nonzero: float) -> Row:
    """The same with exact extremes, of a tensor whose sums or stretches leave something open."""
    blocks = partial(_blocks, tensor)
    low = float(_least([_least(block) for block in blocks()]))
    high = float(_greatest([_greatest(block) for block in blocks()]))
    return _row(tensor.numel(), (*moments, low, high), blocks, looked_at, nonzero)


def _moments(flat: Tensor) -> tuple[float, float]:
    """Sum and sum of squares, from the end: that is what was written last, and is in the cache.

    And whoever reads the tensor next, from its start, finds that there.
    """
    if flat.numel() >= _PARALLEL and torch.get_num_threads() > 1:
        return float(flat.sum()), _square(flat)
    total = square = 0.0
    for block in split(flat, BLOCK)[::-1]:
        total += float(block.sum())
        square += _square(block)
    return total, square


def _only(flat: Array) -> tuple[Array]:
    return (flat,)


def _in_blocks(tensor: Tensor, sample_at: int | None, start: int) -> Row:
    values = in_memory_order(tensor)
    size = values.numel()
    result = _in_one_pass(values, size, zeros=sample_at is not None)
    if result is None:
        result = _of_ordered(values, sample_at, start)
    times = tensor.numel() // size
    return result if times == 1 else result.repeated(times)


def _of_ordered(values: Tensor, sample_at: int | None, start: int) -> Row:
    size = values.numel()
    if size > _LARGE and _is_dense(values):
        return _of_large(values, start, zeros=sample_at is not None)
    looked_at, nonzero = 0, 0.0
    if sample_at is not None:
        some = _some(values, sample_at)
        looked_at, nonzero = some.size, _nonzero(some)
    if values.element_size() == 1:
        return Row(size, *eight_bits.sums(values), looked_at, nonzero)
    sums = _sums_of_all(_blocks(values))
    return _row(size, sums, partial(_blocks, values), looked_at, nonzero)


def _row(
    size: int,
    sums: _Sums,
    blocks: Callable[[], Iterable[Array]],
    looked_at: int,
    nonzero: float,
) -> Row:
    """The row that follows from the sums, or from another look at the blocks if it must."""
    total, square, low, high = sums
    m2 = square - total / size * total
    if m2 >= _LEAST_SHARE * square and _VANISHING <= square / size < math.inf:
        return Row(size, total, m2, low, high, 0, looked_at, nonzero)
    if not (-math.inf < low and high < math.inf):
        bad = size - sum(int(np.count_nonzero(np.isfinite(block))) for block in blocks())
        return Row(size, math.nan, math.nan, low, high, bad, looked_at, nonzero)
    if low == high:
        return Row(size, low * size, 0.0, low, high, 0, looked_at, nonzero)
    near = total / size if math.isfinite(total) else low / 2 + high / 2
    total, m2 = _centred(size, blocks, near)
    return Row(size, total, max(m2, 0.0), low, high, 0, looked_at, nonzero)


def _nonzero(some: Array) -> float:
    return float(np.count_nonzero(some.astype(np.bool_)))  # NumPy counts truth values faster


# -- memory ---------------------------------------------------------------------------------------


def _flat(tensor: Tensor) -> Array:
    """All elements in float32 or float64 and one dimension: a view of dense memory, or a copy."""
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    return in_numpy(wide(tensor)).ravel("K")


def _is_dense(values: Tensor) -> bool:
    return values.element_size() >= 4 and values.is_contiguous()


def _some(values: Tensor, start: int) -> Array:
    """About 4,096 of the elements in float32 or float64."""
    if _is_dense(values):
        return sampled(in_numpy(values.view(-1)), values.shape, start)
    return in_numpy(wide(sample(values, start)))


def _blocks(values: Tensor) -> Iterator[Array]:
    """The elements in flat blocks of float32 or float64.

    What is not dense, or of a half type, is copied into one buffer: the next block overwrites it.
    """
    if _is_dense(values):
        flat = in_numpy(values.view(-1))
        for start in range(0, flat.size, BLOCK):
            yield flat[start : start + BLOCK]
        return
    dtype = torch.float64 if values.dtype is torch.float64 else torch.float32
    buffer = torch.empty(min(BLOCK, values.numel()), dtype=dtype, device="cpu")
    held = in_numpy(buffer)
    for piece in pieces(values, BLOCK):
        part = buffer[:size] if (size := piece.numel()) < BLOCK else buffer
        (part if piece.dim() == 1 else part.view(piece.shape)).copy_(piece)
        yield held[:size]


# -- sums -----------------------------------------------------------------------------------------


def _sums(block: Array) -> _Sums:
    return *_sum_and_square(block), float(_least(block)), float(_greatest(block))


def _sum_and_square(block: Array) -> tuple[float, float]:
    if block.size < _SMALL:
        return float(_sum(block)), float(block.dot(block))
    tensor = _tensor_of(block)
    return float(tensor.sum()), _square(tensor)


def _sums_of_all(blocks: Iterable[Array]) -> _Sums:
    totals, squares, lows, highs = zip(*map(_sums, blocks), strict=True)
    if math.isnan(total := sum(totals)):  # Python drops a NaN or not depending on the order
        return total, sum(squares), float(_least(lows)), float(_greatest(highs))
    return total, sum(squares), min(lows), max(highs)


def _sums_of_each(flats: Sequence[tuple[int, Array]]) -> Iterable[_Sums]:
    arrays = [flat for _, flat in flats]
    starts = [0, *accumulate(flat.size for flat in arrays[:-1])]
    joined = np.concatenate(arrays)
    return zip(
        np.add.reduceat(joined, starts).tolist(),
        np.add.reduceat(joined * joined, starts).tolist(),
        np.minimum.reduceat(joined, starts).tolist(),
        np.maximum.reduceat(joined, starts).tolist(),
        strict=True,
    )


def _square(flat: Tensor) -> float:
    """Sum of squares, of rows first: in one sum of many that are alike each loses the same bits.

    How much that is depends on how many sums a processor keeps side by side: some lose 7e-5 in a
    `BLOCK`, in one sum of it.
    """
    even = flat.numel() // _ROWS * _ROWS
    norm = cast(Any, torch.linalg).vector_norm
    norms, rest = norm(flat[:even].view(-1, _ROWS), dim=1).double(), flat[even:]
    return float(_dot(norms, norms)) + float(_dot(rest, rest))


def _centred(size: int, blocks: Callable[[], Iterable[Array]], near: float) -> tuple[float, float]:
    """Sum, and sum of squares around the mean, by a pass around a number near the mean."""
    # In float32 first, around a number that it has, or each difference would be off.
    for shift, dtype in ((float(np.float32(near)), _SINGLE), (near, _DOUBLE)):
        total = square = 0.0
        for block in blocks():
            sums = _sum_and_square(np.subtract(block, shift, dtype=max(block.dtype, dtype)))
            total, square = total + sums[0], square + sums[1]
        if _VANISHING <= square / size < math.inf:
            break
    return shift * size + total, square - total / size * total


# -- what looks at a sample only ------------------------------------------------------------------


@np.errstate(all="ignore")
def batch_share(tensor: Tensor, start: int) -> float:
    """As `traindx.stats.batch_share`."""
    entries = in_numpy(batch_sample(tensor, start).double())
    centred = (entries - _sum(entries) / entries.shape[0]).ravel()
    entries = entries.ravel()
    return float(np.float64(centred.dot(centred)) / entries.dot(entries))


_LAYOUTS = {4: (np.uint32, 23, 127), 8: (np.uint64, 52, 1023)}
"""Integer type of so many bytes, bits of the fraction, and what is added to a binary exponent."""


def exponents(tensor: Tensor, start: int, scale: Number | None) -> Tensor:
    """As `traindx.stats.exponents`."""
    some = _flat(tensor) if tensor.numel() < _SMALL else _some(in_memory_order(tensor), start)
    if scale is not None:
        some = in_numpy(_tensor_of(some) / scale)
    kind, shift, bias = _LAYOUTS[some.itemsize]
    places = (cast(Any, some).view(kind) >> kind(shift)).astype(np.intp)
    with_sign = np.bincount(places, minlength=4 * (bias + 1))
    # Field 0 is that of zeros and of numbers too small for the first bin; the last, left out here,
    # is that of NaN and infinity.
    fields = with_sign[: 2 * bias + 1] + with_sign[2 * bias + 2 : -1]
    counts = np.add.reduceat(fields, _edges(bias))
    if fields[0]:
        counts[0] -= some.size - np.count_nonzero(some)
    return _tensor_of(counts.astype(np.float32))


@lru_cache
def _edges(bias: int) -> Array:
    """Where the bins of `EXPONENTS` begin among the exponent fields."""
    return np.array([0, *(bias + exponent for exponent in EXPONENTS[1:])])
