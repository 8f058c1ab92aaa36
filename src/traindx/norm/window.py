"""Local response normalization: each element divided by a power of its neighbours' squares.

D = k + alpha W x^2 and y = x D^-beta, where row c of W marks the window of element c along the one
reduced axis. Frameworks differ in the window of an even size and in what alpha means.
"""

from __future__ import annotations

from functools import reduce

from traindx.norm.arrays import Array, namespace
from traindx.norm.spec import NormSpec, Window


def forward(spec: NormSpec, at: Window, x: Array) -> Array:
    """Each element of `x` over its window's divisor."""
    return x * _divisor(spec, at, x) ** -at.beta


def pull(spec: NormSpec, at: Window, x: Array, g: Array) -> Array:
    """The gradient by `x` for a gradient `g` of the output."""
    divisor = _divisor(spec, at, x)
    through = _windowed(spec, at, g * x * divisor ** (-at.beta - 1), back=True)
    return g * divisor**-at.beta - 2 * at.alpha * at.beta * x * through


def push(spec: NormSpec, at: Window, x: Array, h: Array) -> Array:
    """How the output moves when `x` moves along `h`."""
    divisor = _divisor(spec, at, x)
    through = x * divisor ** (-at.beta - 1) * _windowed(spec, at, x * h)
    return h * divisor**-at.beta - 2 * at.alpha * at.beta * through


def bend(spec: NormSpec, at: Window, x: Array, g: Array, h: Array) -> Array:
    """The gradient of <h, pull(g)> by `x`."""
    divisor, beta = _divisor(spec, at, x), at.beta
    steep = divisor ** (-beta - 1)
    neighbours = _windowed(spec, at, h * x)
    # <h g, D^-beta> - 2 alpha beta <g x D^(-beta-1), W(h x)>: through each D, x and h x.
    by_divisor = -beta * h * g * steep
    by_divisor += 2 * at.alpha * beta * (beta + 1) * g * x * steep / divisor * neighbours
    by_x = g * steep * neighbours + h * _windowed(spec, at, g * x * steep, back=True)
    through = 2 * at.alpha * x * _windowed(spec, at, by_divisor, back=True)
    return through - 2 * at.alpha * beta * by_x


def _divisor(spec: NormSpec, at: Window, x: Array) -> Array:
    return at.k + at.alpha * _windowed(spec, at, x**2)


def _windowed(spec: NormSpec, at: Window, x: Array, *, back: bool = False) -> Array:
    """W x along the reduced axis, or its transpose."""
    xp, (axis,) = namespace(x), spec.reduced.of(x.ndim)
    before, after = (at.after, at.before) if back else (at.before, at.after)
    x = xp.moveaxis(x, axis, -1)
    furthest = max(x.shape[-1] - 1, 0)  # a window may reach far beyond both ends
    places = range(-min(before, furthest), min(after, furthest) + 1)
    shifted = [_shifted(x, by) for by in places]
    # Sums of shifted copies, and no matrix: what is infinite must not meet a 0 outside its window.
    return xp.moveaxis(reduce(lambda a, b: a + b, shifted), -1, axis)


def _shifted(x: Array, by: int) -> Array:
    """The element `by` places on along the last axis, 0 beyond the ends."""
    xp, extent = namespace(x), x.shape[-1]
    beyond = xp.zeros_like(x[..., : min(abs(by), extent)])
    if by < 0:
        return xp.concat((beyond, x[..., : max(extent + by, 0)]), axis=-1)
    return xp.concat((x[..., by:], beyond), axis=-1)
