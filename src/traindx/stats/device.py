"""Statistics on a device other than the CPU: tensors that nobody has waited for."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from traindx.quantities import EXPONENTS
from traindx.stats.memory import batch_sample, in_memory_order, pieces, sample, wide
from traindx.stats.rows import Number, Row

_LARGE = 1 << 24
"""Elements of the largest temporary."""


def row(tensor: Tensor, sample_at: int | None) -> Row:
    """The sums of a tensor; two passes always, since none can be looked at."""
    values = in_memory_order(tensor)
    size, precise = values.numel(), torch.float32 if tensor.device.type == "mps" else torch.float64
    parts = [wide(piece, 2) for piece in pieces(values, _LARGE)]
    total = torch.stack([part.sum(dtype=precise) for part in parts]).sum()
    # With a dimension, the mean widens what is of half precision.
    mean = (total / size).to(torch.float64 if values.element_size() > 4 else torch.float32)
    centred = (part - mean.view(1) for part in parts)
    norm = cast(Any, torch.linalg).vector_norm
    m2 = torch.stack([norm(part, dtype=precise) for part in centred]).square().sum()
    extremes = [torch.aminmax(part) for part in parts]
    low, high = torch.aminmax(torch.stack([extreme for pair in extremes for extreme in pair]))
    looked_at, nonzero = 0, cast(Number, 0.0)
    if sample_at is not None:
        some = wide(sample(values, sample_at), 2)
        looked_at, nonzero = some.numel(), torch.count_nonzero(some)
    result = Row(size, total, m2, low, high, -1, looked_at, nonzero)
    times = tensor.numel() // size
    return result if times == 1 else result.repeated(times)


def batch_share(tensor: Tensor, start: int) -> Tensor:
    """As `traindx.stats.batch_share`, zero-dimensional."""
    some = batch_sample(tensor, start)
    # Apple's devices have no float64; around the mean, float32 is good to 1e-13 of the square.
    entries = some.float() if tensor.device.type == "mps" else some.double()
    centred = (entries - entries.mean(0)).reshape(-1)
    entries = entries.reshape(-1)
    return torch.dot(centred, centred) / torch.dot(entries, entries)


_LAYOUTS = {torch.float32: (torch.int32, 23, 127), torch.float64: (torch.int64, 52, 1023)}
"""Integer type of the same size, bits of the fraction, and what is added to a binary exponent."""


def exponents(tensor: Tensor, start: int, scale: Number | None) -> Tensor:
    """As `traindx.stats.exponents`."""
    some = wide(sample(in_memory_order(tensor), start))
    some = some if scale is None else some / scale
    as_integer, shift, bias = _LAYOUTS[some.dtype]
    fields = some.view(as_integer).bitwise_right_shift(shift).bitwise_and_(2 * bias + 1)
    low, high = EXPONENTS.start, EXPONENTS.stop - 1
    # bincount would wait for the device to learn the largest field.
    place = (fields - bias).clamp(low, high).where(some.isfinite() & (some != 0), high + 1)
    each = torch.arange(low, high + 1, device=place.device)
    return (place.unsqueeze(1) == each).sum(0, dtype=torch.float32)
