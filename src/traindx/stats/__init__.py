"""`summarize` and its like: statistics of one tensor that never synchronize with a device.

On the CPU the fields are floats at once, since reading costs nothing there and lets a hard case
(large mean, overflow, non-finite) be computed again more carefully. On another device they are
zero-dimensional tensors, which the recorder brings over in one copy at the end of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

from torch import Tensor

from traindx.stats import device, host
from traindx.stats.measurable import is_freed, unmeasurable
from traindx.stats.memory import SAMPLE, sampled
from traindx.stats.rows import Number, Row

_on_host: Callable[[Tensor], bool] = attrgetter("is_cpu")
"""The one switch between `host` and `device`.

Tests replace it to run what is for devices in the CPU's memory.
"""

__all__ = [
    "SAMPLE",
    "Row",
    "batch_share",
    "exponents",
    "is_freed",
    "sampled",
    "summarize",
    "summarize_all",
    "unmeasurable",
]


def summarize(tensor: Tensor, *, sample_at: int | None = None, start: int = 0) -> Row:
    """The sums of one measurable tensor, without a temporary of its size.

    Args:
        tensor: Any shape and strides; `unmeasurable` says nothing against it.
        sample_at: Where the sample for zeros starts (the step); None takes none.
        start: Moves the stretches that the extremes of a large tensor are looked for in.
    """
    if _on_host(tensor):
        return host.row(tensor, sample_at, start)
    return device.row(tensor.detach(), sample_at)


def summarize_all(tensors: Sequence[Tensor], *, start: int = 0) -> list[Row]:
    """`summarize` of each measurable tensor, at less cost where many of them are small.

    Made for the gradients of a model, most of which are those of biases and normalizations.
    """
    if all(map(_on_host, tensors)):
        return host.rows(tensors, start)
    return [summarize(tensor, start=start) for tensor in tensors]


def exponents(tensor: Tensor, start: int = 0, scale: Number | None = None) -> Tensor:
    """How many elements of a sample have each binary exponent, by the bins of `EXPONENTS`.

    Args:
        tensor: Any shape and strides; measurable.
        start: Moves the sample.
        scale: What the tensor was multiplied by (an AMP loss scale).
    """
    return (host if _on_host(tensor) else device).exponents(tensor.detach(), start, scale)


def batch_share(tensor: Tensor, start: int = 0) -> Number:
    """Variance across a batch (axis 0) over the mean square, both averaged over sampled entries.

    In float64 around each entry's own mean, since one pass in float32 reads about -1e-6 where 1e-10
    is true. NaN where every entry looked at is 0.

    Args:
        tensor: (samples, ...); measurable.
        start: Moves the sample of entries.
    """
    return (host if _on_host(tensor) else device).batch_share(tensor.detach(), start)
