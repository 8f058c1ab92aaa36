"""What a normalization layer computes, as data.

Every layer moves and scales elements by statistics of the elements that share them; layers and
frameworks differ in the answers given here, so a new kind is a new `NormSpec`, not a new function.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm.choices import (
    Accumulation,
    Cast,
    EmptyBatch,
    EpsPlacement,
    Estimator,
    GroupOrder,
    OneSample,
    Passes,
    Scale,
)


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
                    say(
                        "An axis must exist in the input; got axis {axis} for an input of "
                        "{ndim} axes. Name an axis from {first} to {last}, or give the "
                        "input that axis.",
                        axis=axis,
                        ndim=ndim,
                        first=-ndim,
                        last=ndim - 1,
                    )
                )
        named = {axis % ndim for axis in self.named}
        return tuple(axis for axis in range(ndim) if (axis in named) is not self.others)


@dataclass(frozen=True, slots=True)
class Groups:
    """An axis cut into parts that are normalized apart; the axis itself stays in `reduced`.

    Give `count` or `size`, not both: GroupNorm counts its groups of channels, Ghost BatchNorm
    fixes the size of its virtual batches.

    Attributes:
        axis: The axis that is cut.
        count: How many parts; -1 cuts it into single elements.
        size: How many elements a part has.
        order: Which elements make a part.
        affine: Whether weight and bias hold one value a part instead of one an element.
    """

    axis: int = 1
    count: int | None = None
    size: int | None = None
    order: GroupOrder = GroupOrder.BLOCKED
    affine: bool = False

    def __post_init__(self) -> None:
        """Refuse what names no cut."""
        if (self.count is None) == (self.size is None) or 0 in {self.count, self.size}:
            raise ArgumentError(
                say(
                    "Groups need either a `count` or a `size`, and not 0; got "
                    "count={count}, size={size}. Give one of them.",
                    count=self.count,
                    size=self.size,
                )
            )

    def cut(self, extent: int) -> tuple[int, int]:
        """Number and size of the parts of an axis of `extent` elements."""
        parts = extent if self.count == -1 else self.count
        if parts is None:
            assert self.size is not None, "checked when made"
            parts = -(-extent // self.size)
        if (parts and extent % parts) or self.size not in {None, extent // max(parts, 1)}:
            if self.size is None:
                divisor = say("{n} groups", n=parts)
            else:
                divisor = say("groups of {n}", n=self.size)
            raise ArgumentError(
                say(
                    "Groups need an axis that divides into them; got {extent} elements "
                    "on axis {axis} and {parts}. Choose a divisor of {extent}.",
                    extent=extent,
                    axis=self.axis,
                    parts=divisor,
                )
            )
        return parts, extent // max(parts, 1)


@dataclass(frozen=True, slots=True)
class Running:
    """How running statistics follow the batches.

    Attributes:
        variance: The estimator whose values are averaged.
        momentum: Weight of the new value; None averages all batches equally.
        axes: Axes along which they vary; over other kept axes the statistics are averaged, as
            tracked InstanceNorm does over its instances.
        counted: Whether a counter of batches is kept and moved.
        of_roots: Whether sqrt(variance + eps) is averaged and squared back, as in Batch Renorm.
    """

    variance: Estimator
    momentum: float | None
    axes: Axes = Axes((1,))
    counted: bool = True
    of_roots: bool = False

    def __post_init__(self) -> None:
        """Refuse a momentum that would make a variance negative."""
        if self.momentum is not None and not 0 <= self.momentum <= 1:
            raise ArgumentError(
                say(
                    "`momentum` is the weight of the new value, from 0 to 1; got "
                    "{momentum}. If your framework gives the old value's weight, pass "
                    "1 minus it.",
                    momentum=self.momentum,
                )
            )


@dataclass(frozen=True, slots=True)
class Renorm:
    """The corrections of Batch Renorm (Ioffe 2017): constants to the gradient.

    With the running mean m and root s, r = batch root / s and d = (batch mean - m) / s.

    Attributes:
        rmin: Lower bound of r; None leaves it unbounded.
        rmax: Upper bound of r.
        dmax: Bound of |d|.
    """

    rmin: float | None = None
    rmax: float | None = None
    dmax: float | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """The neighbours that divide an element in local response normalization.

    The divisor is (k + alpha * sum of squares of the window) ** beta.

    Attributes:
        before: Neighbours before the element.
        after: Neighbours after it.
        alpha: Weight of each square; whatever a framework divides by its size is divided already.
        beta: The power.
        k: What is added.
    """

    before: int
    after: int
    alpha: float
    beta: float
    k: float


@dataclass(frozen=True, slots=True)
class Spectral:
    """Division of a weight by an estimate u.Wv of its largest singular value.

    Attributes:
        axis: The axis that makes the rows of W; all others make its columns.
        iterations: Power iterations a training forward makes first.
        u_first: Whether an iteration computes u from v and then v, or v from u and then u.
    """

    axis: int = 0
    iterations: int = 1
    u_first: bool = True


@dataclass(frozen=True, slots=True)
class Mask:
    """How a mask leaves elements out of the statistics.

    Attributes:
        added: What is added to the number of elements before dividing by it (Keras: 1e-7).
    """

    added: float = 0.0


@dataclass(frozen=True, slots=True)
class NormSpec:
    """One normalization layer.

    Attributes:
        kind: Name for messages.
        reduced: Axes whose elements share statistics.
        affine: Axes along which weight and bias vary; None if the layer has neither.
        eps: What keeps the divisor away from 0; None is the machine epsilon of the computation.
        eps_placement: Where it stands.
        centered: Whether the mean is subtracted.
        scale: What the elements are divided by.
        variance: Estimator used to normalize.
        running: Running statistics; None if the layer keeps none.
        one_sample: What training does with a single element.
        empty: What training does with no element.
        groups: An axis that is cut into parts normalized apart.
        weight_offset: What is added to the weight: 1 where 1 + w multiplies, as in Gemma.
        renorm: The corrections of Batch Renorm.
        window: The window of local response normalization, along the one reduced axis.
        spectral: The power iteration of spectral normalization.
        mask: How masked elements are left out; None if the layer takes no mask.
        accumulation: The type computed in, when a layer is emulated on its own input type.
        cast: Where that emulation rounds back to the input's type.
        passes: How that emulation takes the variance.
    """

    kind: str
    reduced: Axes
    affine: Axes | None = None
    eps: float | None = 1e-5
    eps_placement: EpsPlacement = EpsPlacement.INSIDE_ROOT
    centered: bool = True
    scale: Scale = Scale.STANDARD_DEVIATION
    variance: Estimator = Estimator.BIASED
    running: Running | None = None
    one_sample: OneSample = OneSample.COMPUTE
    empty: EmptyBatch = EmptyBatch.KEEP
    groups: Groups | None = None
    weight_offset: float = 0.0
    renorm: Renorm | None = None
    window: Window | None = None
    spectral: Spectral | None = None
    mask: Mask | None = None
    accumulation: Accumulation = Accumulation.FLOAT32
    cast: Cast = Cast.AFTER_AFFINE
    passes: Passes = Passes.TWO

    def __post_init__(self) -> None:
        """Refuse an eps with which a constant input has no output, where the layer refuses it."""
        if self.eps is None:
            return
        if not math.isfinite(self.eps) or (self.running and self.eps <= 0):
            raise ArgumentError(
                say(
                    "{kind} needs a positive, finite `eps`; got {eps}. Use 1e-5.",
                    kind=self.kind,
                    eps=self.eps,
                )
            )
        if self.eps and self.eps_placement is EpsPlacement.NONE:
            raise ArgumentError(
                say(
                    "{kind} has no eps here; got {eps}. Pass 0, or name its placement.",
                    kind=self.kind,
                    eps=self.eps,
                )
            )
