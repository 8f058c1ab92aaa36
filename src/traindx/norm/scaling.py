"""The one formula of all layers that share statistics, and its derivatives.

For each set of elements, with v its spread: y = z r(v) + shift, where z = P x is x, centred or not.
Every layer differs only in P, in r, and in how v moves with x: u = dv/dx, H = du/dx. Then
  pull back  g:  P'g r + r' <g, z> u
  push on    t:  P t r + r' <u, t> z
  bend (the gradient of <h, pull back of g> by x):
                 (r' <g, Ph> + r'' <h, u> <g, z>) u + r' (<g, z> H h + <h, u> P'g)
The inner products are over a set. They are sums over elements, so sets that lie on several ranks
add theirs: that is all SyncBatchNorm communicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from traindx.norm.arrays import Array, namespace, total
from traindx.norm.choices import EpsPlacement, Scale
from traindx.norm.moments import Statistics, scale_of
from traindx.norm.spec import NormSpec

Sums = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Scaling:
    """One pass through a layer: everything its derivatives need.

    Attributes:
        axes: The reduced axes.
        z: The input, centred if the layer centres.
        rates: r, r' and r'', [K].
        shift: What Batch Renorm adds, [K].
        share: Each element's part in the mean, for a layer that centres; else None.
        slope: u, or None where the statistics are constants.
        curve: Factor of H; 0 where the slope is constant.
        curve_share: Each element's part in the mean that H takes away; None if it takes none.
        lopsided: Whether the shares do not sum to 1, so that deviations do not sum to 0.
    """

    axes: tuple[int, ...]
    z: Array
    rates: tuple[Array, Array, Array]
    shift: Array | float = 0.0
    share: Array | float | None = None
    slope: Array | None = None
    curve: Array | float = 0.0
    curve_share: Array | float | None = None
    lopsided: bool = False

    def output(self) -> Array:
        """What is normalized, before weight and bias."""
        return self.z * self.rates[0] + self.shift

    def sums(self, g: Array, h: Array | None = None) -> Sums:
        """The inner products that the derivatives need, of this part of each set."""
        found = (self._sum(g), self._sum(g * self.z))
        if h is None:
            return found
        tilt = self._sum(0 * h if self.slope is None else h * self.slope)
        share = self.share if self.share is not None else self.curve_share
        middle = self._sum(0 * h if share is None else h * share)
        return (*found, self._sum(g * h), tilt, middle)

    def pull(self, g: Array, sums: Sums | None = None) -> Array:
        """The gradient by x for a gradient `g` of the normalized output."""
        sum_g, along = (sums or self.sums(g))[:2]
        pulled = self._centered_back(g, sum_g) * self.rates[0]
        return pulled if self.slope is None else pulled + self.rates[1] * along * self.slope

    def push(self, g: Array, h: Array, sums: Sums | None = None) -> Array:
        """The gradient of <h, pull(g)> by g: how the output moves when x moves along `h`."""
        *_, tilt, middle = sums or self.sums(g, h)
        pushed = (h if self.share is None else h - middle) * self.rates[0]
        return pushed if self.slope is None else pushed + self.rates[1] * tilt * self.z

    def bend(self, g: Array, h: Array, sums: Sums | None = None) -> Array:
        """The gradient of <h, pull(g)> by x."""
        if self.slope is None:
            return 0 * g
        sum_g, along, both, tilt, middle = sums or self.sums(g, h)
        _, rate1, rate2 = self.rates
        if self.share is not None:
            both = both - sum_g * middle
        curved = self.curve * (h if self.curve_share is None else h - middle)
        if self.lopsided:
            curved = curved - self.curve_share * self._sum(curved)
        back = self._centered_back(g, sum_g)
        return (rate1 * both + rate2 * tilt * along) * self.slope + rate1 * (
            along * curved + tilt * back
        )

    def _centered_back(self, g: Array, sum_g: Array) -> Array:
        return g if self.share is None else g - self.share * sum_g

    def _sum(self, values: Array) -> Array:
        return total(values, self.axes)


def added(parts: Sequence[Sums]) -> Sums:
    """The inner products of whole sets, from those of their parts."""
    return tuple(reduce(lambda a, b: a + b, column) for column in zip(*parts, strict=True))


def by_batch(
    spec: NormSpec, x: Array, batch: Statistics, axes: tuple[int, ...], mask: Array | None = None
) -> Scaling:
    """The pass of `x`, as its layout sees it, through its own statistics."""
    xp = namespace(x)
    kept = 1.0 if mask is None else xp.astype(mask, x.dtype)
    share = kept / batch.count
    z = x - batch.mean if spec.centered else x
    lopsided = mask is not None and spec.mask is not None and spec.mask.added != 0
    if spec.scale is Scale.STANDARD_DEVIATION:
        curve = 2 * kept / batch.divisor(spec.variance)
        slope, curve_share = curve * (x - batch.mean), share
        if lopsided:
            slope = slope - share * total(slope, axes)
    elif spec.scale is Scale.SUM_OF_MAGNITUDES:
        curve, slope, curve_share = 0.0, xp.sign(x) * kept, None
    else:
        curve = 2 * kept / (batch.count if spec.scale is Scale.ROOT_MEAN_SQUARE else 1)
        slope, curve_share = curve * x, None
    return Scaling(
        axes,
        z,
        rates(spec, scale_of(spec, batch)),
        share=share if spec.centered else None,
        slope=slope,
        curve=curve,
        curve_share=curve_share,
        lopsided=lopsided and curve_share is not None,
    )


def by_constants(
    spec: NormSpec, x: Array, mean: Array, var: Array, axes: tuple[int, ...]
) -> Scaling:
    """The pass of `x` through statistics that do not depend on it, as in evaluation."""
    return Scaling(axes, x - mean if spec.centered else x, rates(spec, var))


def rates(spec: NormSpec, v: Array) -> tuple[Array, Array, Array]:
    """One over the divisor of a spread `v`, and its first and second derivative by it.

    Where a root of 0 has no derivative it is taken as 0: the elements are then all equal, and the
    slope it would multiply is 0.
    """
    xp, eps = namespace(v), machine_eps(v) if spec.eps is None else spec.eps
    match spec.eps_placement:
        case EpsPlacement.INSIDE_ROOT | EpsPlacement.NONE:
            base, moves = v + eps, xp.ones_like(v)
        case EpsPlacement.MAX_INSIDE_ROOT:
            base, moves = _at_least(v, eps)
        case EpsPlacement.MAX_OUTSIDE_ROOT:
            # max(sqrt v, eps) = sqrt(max(v, eps^2)) for the eps of at least 0 that it takes.
            base, moves = _at_least(v, eps if spec.scale is Scale.SUM_OF_MAGNITUDES else eps**2)
        case EpsPlacement.ZERO_TO_ZERO:
            base, moves = xp.where(v == 0, 1.0, v), xp.astype(v != 0, v.dtype)
        case EpsPlacement.OUTSIDE_ROOT:
            return _outside(spec, v, eps)
    if spec.scale is Scale.SUM_OF_MAGNITUDES:
        return 1 / base, -moves / base**2, 2 * moves / base**3
    rate = 1 / xp.sqrt(base)
    return rate, -0.5 * moves * rate / base, 0.75 * moves * rate / base**2


def machine_eps(v: Array) -> float:
    """The distance from 1 to the next number of the type of `v`."""
    return float(namespace(v).finfo(v.dtype).eps)


def _at_least(v: Array, least: float) -> tuple[Array, Array]:
    xp = namespace(v)
    return xp.where(v < least, least, v), xp.astype(v >= least, v.dtype)


def _outside(spec: NormSpec, v: Array, eps: float) -> tuple[Array, Array, Array]:
    xp = namespace(v)
    if spec.scale is Scale.SUM_OF_MAGNITUDES:
        return 1 / (v + eps), -1 / (v + eps) ** 2, 2 / (v + eps) ** 3
    root = xp.sqrt(v)
    divisor = root + eps
    moves = xp.astype(v > 0, v.dtype)
    safe = xp.where(v > 0, root, 1.0)
    rate1 = -0.5 * moves / (safe * divisor**2)
    rate2 = moves * (0.25 / (safe**3 * divisor**2) + 0.5 / (safe**2 * divisor**3))
    return 1 / divisor, rate1, rate2
