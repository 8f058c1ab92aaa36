"""The questions on which normalization layers differ, and the answers there are."""

from __future__ import annotations

from enum import Enum


class Scale(str, Enum):
    """What a set of `n` elements is divided by, eps aside."""

    STANDARD_DEVIATION = "standard deviation"
    """The root of the mean squared deviation from the mean."""
    ROOT_MEAN_SQUARE = "root mean square"
    """The root of the mean square, whatever the mean is."""
    EUCLIDEAN_NORM = "euclidean norm"
    """The root of the sum of squares."""
    SUM_OF_MAGNITUDES = "sum of magnitudes"
    """The sum of absolute values; it has no root, so eps is added to it."""


class Estimator(str, Enum):
    """How a variance follows from the sum of squared deviations of `n` elements."""

    BIASED = "biased"
    """Divide by n."""
    UNBIASED = "unbiased"
    """Divide by n - 1."""
    UNBIASED_OR_ZERO = "unbiased, or 0 for one element"
    """Divide by n - 1, or by 1 for a single element."""

    @property
    def lost(self) -> int:
        """Degrees of freedom lost: what is subtracted from `n`."""
        return int(self is not Estimator.BIASED)


class EpsPlacement(str, Enum):
    """Where eps keeps the divisor away from 0."""

    INSIDE_ROOT = "inside the root"
    """Divide by sqrt(var + eps)."""
    OUTSIDE_ROOT = "outside the root"
    """Divide by sqrt(var) + eps."""
    MAX_INSIDE_ROOT = "greatest inside the root"
    """Divide by sqrt(max(var, eps))."""
    MAX_OUTSIDE_ROOT = "greatest outside the root"
    """Divide by max(sqrt(var), eps)."""
    NONE = "none"
    """Divide by sqrt(var): a set of equal elements has no output."""
    ZERO_TO_ZERO = "none, 0 stays 0"
    """Divide by sqrt(var), but by 1 where that is 0."""


class GroupOrder(str, Enum):
    """Which elements of an axis make a group."""

    BLOCKED = "blocked"
    """Neighbours: 0 0 1 1."""
    INTERLEAVED = "interleaved"
    """Every G-th: 0 1 0 1."""


class OneSample(str, Enum):
    """What training does when only one element has a statistic to itself."""

    REFUSE = "refuse"
    """An error: its variance says nothing."""
    REFUSE_LONE = "refuse if alone"
    """An error for a batch of one sample only: torch's GroupNorm multiplies its check in N."""
    COMPUTE = "compute"
    """The element is its own mean, so the output is the bias."""
    IDENTITY = "identity"
    """The input is the output, without weight and bias, and running statistics stay."""


class EmptyBatch(str, Enum):
    """What training does with a batch of no elements."""

    REFUSE = "refuse"
    """An error."""
    KEEP = "keep"
    """The output is empty and running statistics stay."""
    KEEP_AND_COUNT = "keep, and count the batch"
    """As `keep`, but the counter of batches moves."""
    POISON = "poison"
    """The mean of nothing makes running statistics NaN."""


class Accumulation(str, Enum):
    """The type a layer computes in, for an input of a narrower one."""

    INPUT = "the input's type"
    """What comes is what is computed in."""
    FLOAT32 = "at least float32"
    """Half types are widened first."""


class Cast(str, Enum):
    """Where a value computed in a wider type is rounded to the input's."""

    AFTER_AFFINE = "after weight and bias"
    """Weight and bias act in the wider type (torch, Gemma)."""
    BEFORE_AFFINE = "before weight and bias"
    """The normalized value is rounded, then multiplied in its own type (Llama)."""


class Passes(str, Enum):
    """How a variance is taken in floating point; in real arithmetic all are the same."""

    TWO = "two passes"
    """Mean first, then deviations from it."""
    ONE = "one pass"
    """E[x^2] - E[x]^2: cancels where |mean| is large, down to negative values."""
    ONE_CLIPPED = "one pass, clipped"
    """As `one pass`, with 0 for what is negative."""
