"""What a sample of attention's rows says: how spread out they are, and how large their logits.

Shapes: B samples of the batch, H heads, L queries, S keys, E width of a head; b, h and l of the
first three are looked at, and every key, since a row's softmax takes them all.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

_SAMPLES, _HEADS, _QUERIES = 2, 16, 16
"""At most so many are looked at: 512 rows."""
_LOGITS = 1 << 16
"""Logits of one call that are computed again, about: long sequences have fewer rows looked at."""

Shape = tuple[int, int, int, int]
"""(B, H, L, S)."""


class Rows(NamedTuple):
    """A sample of rows, (b, h, l, S) each.

    Attributes:
        logits: Scaled products of queries and keys, before any mask or bias is added.
        probabilities: Their softmax as the call had it, before dropout.
        allowed: Keys that the mask lets through, or what expands to it; None if there is no mask.
    """

    logits: Tensor
    probabilities: Tensor
    allowed: Tensor | None


class Sharpness(NamedTuple):
    """Statistics of the rows, zero-dimensional, on their device.

    Attributes:
        entropy: Mean entropy of a row over the logarithm of the keys it may attend to; NaN where
            no row has a choice.
        lowest: The mean of the head with the lowest.
        least: Least logit of an allowed key.
        greatest: Greatest logit of an allowed key.
    """

    entropy: Tensor
    lowest: Tensor
    least: Tensor
    greatest: Tensor


class Sample:
    """Which rows of a call are looked at: evenly spaced ones, others every time.

    Slices, so that no index has to be brought to the device.

    Args:
        shape: (B, H, L, S).
        turn: How often it has been looked at before; in time every row has its turn.
    """

    def __init__(self, shape: Shape, turn: int) -> None:
        samples, heads, self._length, keys = shape
        pairs = min(samples, _SAMPLES) * min(heads, _HEADS)
        affordable = max(1, min(_QUERIES, _LOGITS // (pairs * max(keys, 1))))
        self._queries, turn = _spaced(self._length, affordable, turn)
        self._batch, turn = _spaced(samples, _SAMPLES, turn)
        self._heads, turn = _spaced(heads, _HEADS, turn)

    def rows(self, tensor: Tensor) -> Tensor:
        """(B, H, L, *) -> (b, h, l, *), a view."""
        return tensor[self._batch, self._heads, self._queries]

    def heads(self, tensor: Tensor) -> Tensor:
        """(B, H, *) -> (b, h, *), a view."""
        return tensor[self._batch, self._heads]

    def positions(self, device: torch.device) -> Tensor:
        """Which queries they are, (l, 1)."""
        return torch.arange(self._length, device=device)[self._queries].unsqueeze(1)


def _spaced(length: int, most: int, turn: int) -> tuple[slice, int]:
    """At most so many of a length, from a start that moves on, and how often it has come around."""
    stride = -(-length // most) or 1
    return slice(turn % stride, None, stride), turn // stride


def products(query: Tensor, key: Tensor, scale: float | Tensor) -> Tensor:
    """Logits of sampled rows, in float32 or wider: (b, h, l, E), (b, h, S, E) -> (b, h, l, S)."""
    return (_single(query) @ _single(key).transpose(-1, -2)) * scale


def biased_softmax(logits: Tensor, bias: Tensor | None, allowed: Tensor | None) -> Tensor:
    """Probabilities of rows whose bias and mask are known."""
    logits = logits if bias is None else logits + bias
    logits = logits if allowed is None else logits.masked_fill(~allowed, -math.inf)
    return logits.softmax(-1)


def seen_through(logits: Tensor, probabilities: Tensor) -> Tensor:
    """Which keys a mask that is not known has let through: (b, h, l, S) each.

    Those with a probability, and those whose logit is too low for one: a sharp softmax rounds to
    zero what no mask forbids. Biases of a few units hardly change that. A key that is both
    forbidden and too low counts as let through.
    """
    best = probabilities.max(-1, keepdim=True)
    log_sum = logits.gather(-1, best.indices) - _single(best.values).log()
    vanishes = logits - log_sum < math.log(torch.finfo(probabilities.dtype).tiny)
    # Rows without any key are all zero, and a NaN is no sign of a mask.
    return (probabilities != 0) | (vanishes & (best.values > 0))


def sharpness(rows: Rows) -> Sharpness:
    """What the rows say (Zhai et al. 2023, section 3; Dehghani et al. 2023, section 2)."""
    logits, allowed = rows.logits, rows.allowed
    entropy: Tensor = cast(Any, torch).special.entr(_single(rows.probabilities)).sum(-1)
    if allowed is None:
        keys = logits.shape[-1]
        spread = entropy / math.log(keys) if keys > 1 else entropy * math.nan
        least, greatest = torch.aminmax(logits)
        return Sharpness(spread.mean(), spread.mean((0, 2)).amin(), least, greatest)
    allowed = allowed.expand_as(logits)
    keys = allowed.sum(-1)
    choice = keys > 1  # a row with a single key has none
    spread = torch.where(choice, entropy / keys.clamp_min(2).log(), 0.0)
    of_head, counted = spread.sum((0, 2)), choice.sum((0, 2))
    by_head = torch.where(counted > 0, of_head / counted, math.inf)
    mean, lowest = of_head.sum() / counted.sum(), by_head.amin()
    return Sharpness(
        mean,
        torch.where(lowest.isinf(), math.nan, lowest),
        logits.masked_fill(~allowed, math.inf).amin(),
        logits.masked_fill(~allowed, -math.inf).amax(),
    )


def _single(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.element_size() < 4 else tensor
