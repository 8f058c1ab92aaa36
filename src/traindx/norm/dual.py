"""Numbers that carry their derivative, over fractions: exact derivatives by no formula of ours.

A dual number is a value and how fast it moves along one direction; arithmetic follows the rules of
differentiation. Its parts may be dual numbers themselves, which gives second derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from traindx.norm.exact import square_root


@dataclass(frozen=True, slots=True)
class Dual:
    """A value and its derivative along one direction."""

    value: Number
    slope: Number

    def __add__(self, other: Number) -> Dual:
        """Sums move as the sum of the movements."""
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.slope + other.slope)
        return Dual(self.value + other, self.slope)

    def __neg__(self) -> Dual:
        """What is turned moves the other way."""
        return Dual(-self.value, -self.slope)

    def __sub__(self, other: Number) -> Dual:
        """As a sum."""
        return self + -other

    def __mul__(self, other: Number) -> Dual:
        """The product rule."""
        if isinstance(other, Dual):
            return Dual(
                self.value * other.value, self.value * other.slope + self.slope * other.value
            )
        return Dual(self.value * other, self.slope * other)

    def __truediv__(self, other: Number) -> Dual:
        """The quotient rule."""
        if isinstance(other, Dual):
            quotient = self.value / other.value
            return Dual(quotient, (self.slope - quotient * other.slope) / other.value)
        return Dual(self.value / other, self.slope / other)

    def __radd__(self, other: Fraction) -> Dual:
        """A constant plus this."""
        return self + other

    def __rsub__(self, other: Fraction) -> Dual:
        """A constant minus this."""
        return -self + other

    def __rmul__(self, other: Fraction) -> Dual:
        """A constant times this."""
        return self * other

    def __rtruediv__(self, other: Fraction) -> Dual:
        """A constant over this."""
        quotient = other / self.value
        return Dual(quotient, -(quotient * self.slope) / self.value)


Number: TypeAlias = Fraction | Dual


def plain(number: Number) -> Fraction:
    """The value without its derivatives."""
    while isinstance(number, Dual):
        number = number.value
    return number


def root(number: Number) -> Number:
    """The square root; that of 0 does not move, as the reference has it."""
    if not isinstance(number, Dual):
        return square_root(number)
    if not plain(number):
        return number * Fraction(0)
    value = root(number.value)
    return Dual(value, number.slope / (value * Fraction(2)))


def power(number: Number, exponent: Fraction) -> Number:
    """A power whose exponent is a fraction of 1, 2, 4, 8 or 16."""
    base, whole = number, exponent
    while whole.denominator != 1:
        base, whole = root(base), whole * 2
    result: Number = Fraction(1)
    for _ in range(abs(whole.numerator)):
        result = result * base
    return result if whole >= 0 else Fraction(1) / result
