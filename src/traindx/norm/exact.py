"""Normalization by rational arithmetic: the slow twin that has no rounding to argue about.

Means, both variances and running statistics of rational data are rational and exact here. The one
irrational step, the square root, is taken to more than 150 bits, where float64 has 53.
A table is a list of rows [B][C]; BatchNorm works down its columns, LayerNorm along its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

from traindx.errors import ArgumentError
from traindx.messages import say

Row = Sequence[Fraction]
Table = Sequence[Row]

_GUARD_BITS = 160


def square_root(value: Fraction) -> Fraction:
    """The square root, cut off below a relative error of 2^-159."""
    if value < 0:
        raise ArgumentError(
            say(
                "A square root needs a value of at least 0; got {value}. Check the "
                "variance it is taken of.",
                value=float(value),
            )
        )
    # An integer root is right to one unit, so the radicand gets twice the bits that must be right,
    # and as many more as the value lies below 1.
    below_one = max(0, value.denominator.bit_length() - value.numerator.bit_length() + 1)
    shift = _GUARD_BITS + below_one
    return Fraction(isqrt((value.numerator << 2 * shift) // value.denominator), 1 << shift)


def mean(values: Row) -> Fraction:
    """The arithmetic mean."""
    if not values:
        raise ArgumentError(say("A mean needs at least one value; got none. Skip empty batches."))
    return sum(values, Fraction(0)) / len(values)


def variance(values: Row, *, unbiased: bool = False) -> Fraction:
    """The mean squared deviation: over n, or over n - 1 if unbiased."""
    center, divisor = mean(values), len(values) - unbiased
    if not divisor:
        raise ArgumentError(
            say("An unbiased variance needs at least two values; got one. Use a larger batch.")
        )
    return sum(((value - center) ** 2 for value in values), Fraction(0)) / divisor


def normalize(values: Row, center: Fraction, spread: Fraction, eps: Fraction) -> list[Fraction]:
    """Each value minus `center`, over the root of `spread` + eps."""
    divisor = square_root(spread + eps)
    return [(value - center) / divisor for value in values]


def batch_norm_train(table: Table, weight: Row, bias: Row, eps: Fraction) -> list[list[Fraction]]:
    """The table with each column normalized by its own mean and biased variance."""
    columns = _columns(table)
    centers = [mean(column) for column in columns]
    spreads = [variance(column) for column in columns]
    return batch_norm_eval(table, centers, spreads, weight, bias, eps)


def batch_norm_eval(
    table: Table, centers: Row, spreads: Row, weight: Row, bias: Row, eps: Fraction
) -> list[list[Fraction]]:
    """The table with column c normalized by `centers[c]` and `spreads[c]`."""
    normalized = [
        normalize(*of_column, eps)
        for of_column in zip(_columns(table), centers, spreads, strict=True)
    ]
    return [_affine(row, weight, bias) for row in _columns(normalized)]


def running_update(
    table: Table, old_mean: Row, old_var: Row, momentum: Fraction
) -> tuple[list[Fraction], list[Fraction]]:
    """Running mean and running (unbiased) variance after the batch."""
    columns = _columns(table)
    batch_mean = [mean(column) for column in columns]
    batch_var = [variance(column, unbiased=True) for column in columns]
    return _blend(old_mean, batch_mean, momentum), _blend(old_var, batch_var, momentum)


def layer_norm(
    table: Table, eps: Fraction, weight: Row | None = None, bias: Row | None = None
) -> list[list[Fraction]]:
    """The table with each row normalized by its own mean and biased variance."""
    rows = [normalize(row, mean(row), variance(row), eps) for row in table]
    ones, zeros = [Fraction(1)] * len(table[0]), [Fraction(0)] * len(table[0])
    return [_affine(row, weight or ones, bias or zeros) for row in rows]


def _affine(row: Row, weight: Row, bias: Row) -> list[Fraction]:
    return [value * w + b for value, w, b in zip(row, weight, bias, strict=True)]


def _blend(old: Row, new: Row, momentum: Fraction) -> list[Fraction]:
    return [o + momentum * (n - o) for o, n in zip(old, new, strict=True)]


def _columns(table: Table) -> list[tuple[Fraction, ...]]:
    return list(zip(*table, strict=True))
