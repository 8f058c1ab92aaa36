"""What a normalization layer computes, as data.

Every layer is centred and scaled by statistics of the elements that share them; layers and
frameworks differ in the answers given here, so a new kind is a new `NormSpec`, not a new function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from traindx.errors import ArgumentError


class Estimator(str, Enum):
    """How a variance follows from the sum of squared deviations of `n` elements."""

    BIASED = "biased"
    """Divide by n."""
    UNBIASED = "unbiased"
    """Divide by n - 1."""

    @property
    def lost(self) -> int:
        """Degrees of freedom lost: what is subtracted from `n`."""
        return int(self is Estimator.UNBIASED)


class EpsPlacement(str, Enum):
    """Where eps keeps the divisor away from 0."""

    INSIDE_ROOT = "inside the root"
    """Divide by sqrt(var + eps)."""
    OUTSIDE_ROOT = "outside the root"
    """Divide by sqrt(var) + eps."""


class OneSample(str, Enum):
    """What training does when only one element has a statistic to itself."""

    REFUSE = "refuse"
    """An error: its variance says nothing."""
    COMPUTE = "compute"
    """The element is its own mean, so the output is the bias."""


@dataclass(frozen=True, slots=True)
class Axes:
    """Axes of an array of any rank: those named, or all others.

    Attributes:
        named: Axes as NumPy counts them; negative ones from the end.
        others: Whether every axis is meant except those named.
    """

    named: tuple[int, ...]
    others: bool = False

    def of(self, ndim: int) -> tuple[int, ...]:
        """These axes in an array of `ndim` axes, ascending."""
        for axis in self.named:
            if not -ndim <= axis < ndim:
                raise ArgumentError(
                    f"An axis must exist in the input; got axis {axis} for an input of {ndim} "
                    f"axes. Name an axis from {-ndim} to {ndim - 1}, or give the input that axis."
                )
        named = {axis % ndim for axis in self.named}
        return tuple(axis for axis in range(ndim) if (axis in named) is not self.others)


@dataclass(frozen=True, slots=True)
class Running:
    """How running statistics follow the batches.

    Attributes:
        variance: The estimator whose values are averaged.
        momentum: Weight of the new value; None averages all batches equally.
    """

    variance: Estimator
    momentum: float | None

    def __post_init__(self) -> None:
        """Refuse a momentum that would make a variance negative."""
        if self.momentum is not None and not 0 <= self.momentum <= 1:
            raise ArgumentError(
                f"`momentum` is the weight of the new value, from 0 to 1; got {self.momentum}. "
                "If your framework gives the old value's weight, pass 1 minus it."
            )


@dataclass(frozen=True, slots=True)
class NormSpec:
    """One normalization layer.

    Attributes:
        kind: Name for messages.
        reduced: Axes over which a mean and a variance are taken.
        affine: Axes along which weight and bias vary.
        eps: What keeps the divisor away from 0.
        eps_placement: Where it stands.
        variance: Estimator used to normalize.
        running: Running statistics; None if the layer keeps none.
        one_sample: What training does with a single element.
    """

    kind: str
    reduced: Axes
    affine: Axes
    eps: float = 1e-5
    eps_placement: EpsPlacement = EpsPlacement.INSIDE_ROOT
    variance: Estimator = Estimator.BIASED
    running: Running | None = None
    one_sample: OneSample = OneSample.COMPUTE

    def __post_init__(self) -> None:
        """Refuse an eps with which a constant input has no output."""
        if not 0 < self.eps < math.inf:
            raise ArgumentError(
                f"{self.kind} needs a positive, finite `eps`; got {self.eps}. Use 1e-5."
            )


def torch_batch_norm(*, eps: float = 1e-5, momentum: float | None = 0.1) -> NormSpec:
    """`torch.nn.BatchNorm1d`, `2d` and `3d`: one statistic for each index of axis 1."""
    return NormSpec(
        kind="BatchNorm",
        reduced=Axes((1,), others=True),
        affine=Axes((1,)),
        eps=eps,
        running=Running(Estimator.UNBIASED, momentum),
        one_sample=OneSample.REFUSE,
    )


def torch_layer_norm(*, normalized_ndim: int = 1, eps: float = 1e-5) -> NormSpec:
    """`torch.nn.LayerNorm` whose `normalized_shape` has `normalized_ndim` axes."""
    last = Axes(tuple(range(-normalized_ndim, 0)))
    return NormSpec(kind="LayerNorm", reduced=last, affine=last, eps=eps)
