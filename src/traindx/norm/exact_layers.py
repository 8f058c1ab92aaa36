"""Every kind of layer by rational arithmetic, element by element: the slow twin of the reference.

It shares the specification with the reference and no arithmetic: an element's set is found from
its index, sums are loops, roots are taken of integers, and derivatives are those of dual numbers,
not of a closed form. Inputs are nested lists, small ones: a gradient runs the layer once an
element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm.choices import EpsPlacement, Estimator, GroupOrder, Scale
from traindx.norm.dual import Dual, Number, plain, power, root
from traindx.norm.spec import NormSpec, Window

Index = tuple[int, ...]
Nested = Any
"""Lists of lists of numbers."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers by their index."""

    shape: Index
    at: Mapping[Index, Number]

    @classmethod
    def read(cls, nested: Nested) -> Grid:
        """The numbers of nested lists, floats taken for exactly what they are."""
        shape: list[int] = []
        level = nested
        while isinstance(level, Sequence):
            shape.append(len(level))  # pyright: ignore[reportUnknownArgumentType]
            level = level[0] if level else None  # pyright: ignore[reportUnknownVariableType]
        return cls(tuple(shape), {i: _number(_get(nested, i)) for i in _indices(shape)})

    def nested(self) -> Nested:
        """The numbers as nested lists again."""

        def below(prefix: Index) -> Nested:
            if len(prefix) == len(self.shape):
                return self.at[prefix]
            return [below((*prefix, i)) for i in range(self.shape[len(prefix)])]

        return below(())

    def moved(self, direction: Grid) -> Grid:
        """These numbers, moving along `direction`."""
        return Grid(self.shape, {i: Dual(n, direction.at[i]) for i, n in self.at.items()})


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a layer is given beside its input, as nested lists."""

    weight: Nested | None = None
    bias: Nested | None = None
    running_mean: Nested | None = None
    running_var: Nested | None = None
    mask: Nested | None = None
    u: Nested | None = None
    v: Nested | None = None


NONE = Parameters()


def forward(spec: NormSpec, x: Nested, given: Parameters = NONE) -> Nested:
    """The output in training."""
    return run(spec, Grid.read(x), given).nested()


def backward(spec: NormSpec, dy: Nested, x: Nested, given: Parameters = NONE) -> Nested:
    """The gradient by `x` of <dy, output>: one run for each element of `x`."""
    grid, seeds = Grid.read(x), Grid.read(dy)
    return Grid(grid.shape, {i: _along(spec, seeds, grid, i, given) for i in grid.at}).nested()


def bend(spec: NormSpec, dy: Nested, x: Nested, h: Nested, given: Parameters = NONE) -> Nested:
    """The gradient by `x` of <h, gradient by x>: second derivatives, by duals of duals."""
    grid, seeds, direction = Grid.read(x), Grid.read(dy), Grid.read(h)
    moving = grid.moved(direction)
    second: dict[Index, Number] = {}
    for i in grid.at:
        found = _along(spec, seeds, moving, i, given)
        second[i] = found.slope if isinstance(found, Dual) else Fraction(0)
    return Grid(grid.shape, second).nested()


def running(
    spec: NormSpec, x: Nested, old_mean: Nested, old_var: Nested, batches: int = 0
) -> tuple[Nested, Nested]:
    """Running mean and variance after one more batch, `batches` having been before."""
    rule, grid = spec.running, Grid.read(x)
    assert rule is not None, "asked of layers that keep them"
    momentum = Fraction(1, batches + 1) if rule.momentum is None else Fraction(rule.momentum)
    before, spreads = Grid.read(old_mean), Grid.read(old_var)
    means: dict[Index, list[Number]] = {i: [] for i in before.at}
    variances: dict[Index, list[Number]] = {i: [] for i in before.at}
    axes = rule.axes.of(len(grid.shape))
    for members in _sets(spec, grid.shape).values():
        place = tuple(members[0][axis] for axis in axes)
        values = [grid.at[i] for i in members]
        means[place].append(_mean(values))
        variances[place].append(_variance(values, rule.variance))
    mean = {i: _blend(before.at[i], _mean(new), momentum) for i, new in means.items()}
    if rule.of_roots:
        eps = _eps(spec)
        var = {
            i: power(
                _blend(root(spreads.at[i] + eps), root(_mean(new) + eps), momentum), Fraction(2)
            )
            - eps
            for i, new in variances.items()
        }
    else:
        var = {i: _blend(spreads.at[i], _mean(new), momentum) for i, new in variances.items()}
    return Grid(before.shape, mean).nested(), Grid(before.shape, var).nested()


def evaluate(spec: NormSpec, x: Nested, given: Parameters) -> Nested:
    """The output in evaluation, by the running statistics given."""
    grid = Grid.read(x)
    assert spec.running is not None, "asked of layers that keep them"
    axes = spec.running.axes.of(len(grid.shape))
    mean, var = Grid.read(given.running_mean), Grid.read(given.running_var)
    out: dict[Index, Number] = {}
    for i, number in grid.at.items():
        place = tuple(i[axis] for axis in axes)
        out[i] = (number - mean.at[place]) / _divisor(spec, var.at[place])
    return _affine(spec, Grid(grid.shape, out), given).nested()


def run(spec: NormSpec, x: Grid, given: Parameters) -> Grid:
    """The output in training, of numbers that may carry derivatives."""
    if spec.window is not None:
        return _windowed(spec, spec.window, x)
    if spec.spectral is not None:
        return _spectral(spec, x, given)
    out: dict[Index, Number] = {}
    mask = None if given.mask is None else Grid.read(given.mask)
    for members in _sets(spec, x.shape).values():
        counted = members if mask is None else [i for i in members if plain(mask.at[i])]
        values = [x.at[i] for i in counted]
        added = Fraction(spec.mask.added) if spec.mask and mask else Fraction(0)
        center = _sum(values) / (len(values) + added)
        spread = _spread(spec, values, center, added)
        divisor = _divisor(spec, spread)
        for i in members:
            moved = x.at[i] - center if spec.centered else x.at[i]
            out[i] = moved / divisor
            if spec.renorm is not None:
                out[i] = _renormed(spec, members[0], out[i], center, spread, given)
    return _affine(spec, Grid(x.shape, out), given)


def _along(spec: NormSpec, dy: Grid, x: Grid, i: Index, given: Parameters) -> Number:
    """How fast <dy, output> moves when the element at `i` does."""
    zero, one = Fraction(0), Fraction(1)
    step = Grid(x.shape, {j: one if j == i else zero for j in x.at})
    output = run(spec, x.moved(step), given)
    return _sum([dy.at[j] * _slope(number) for j, number in output.at.items()])


def _slope(number: Number) -> Number:
    return number.slope if isinstance(number, Dual) else Fraction(0)


def _sets(spec: NormSpec, shape: Index) -> dict[Index, list[Index]]:
    """The indices that share statistics, by what they have in common."""
    reduced = spec.reduced.of(len(shape))
    found: dict[Index, list[Index]] = {}
    for i in _indices(shape):
        key = tuple(place for axis, place in enumerate(i) if axis not in reduced)
        if spec.groups is not None:
            key += (_group(spec, i, shape),)
        found.setdefault(key, []).append(i)
    return found


def _group(spec: NormSpec, i: Index, shape: Index) -> int:
    groups = spec.groups
    assert groups is not None, "asked of layers that have them"
    axis = groups.axis % len(shape)
    parts, size = groups.cut(shape[axis])
    return i[axis] // size if groups.order is GroupOrder.BLOCKED else i[axis] % parts


def _spread(spec: NormSpec, values: list[Number], center: Number, added: Fraction) -> Number:
    count = len(values) + added
    if spec.scale is Scale.STANDARD_DEVIATION:
        deviations = _sum([(value - center) * (value - center) for value in values])
        lost = 0 if spec.variance is Estimator.UNBIASED_OR_ZERO and len(values) == 1 else None
        return deviations / (count - (spec.variance.lost if lost is None else lost))
    if spec.scale is Scale.SUM_OF_MAGNITUDES:
        return _sum([value if plain(value) >= 0 else -value for value in values])
    squares = _sum([value * value for value in values])
    return squares / count if spec.scale is Scale.ROOT_MEAN_SQUARE else squares


def _divisor(spec: NormSpec, spread: Number) -> Number:
    eps, rooted = _eps(spec), spec.scale is not Scale.SUM_OF_MAGNITUDES
    take: Callable[[Number], Number] = root if rooted else _itself
    match spec.eps_placement:
        case EpsPlacement.INSIDE_ROOT | EpsPlacement.NONE:
            return take(spread + eps)
        case EpsPlacement.OUTSIDE_ROOT:
            return take(spread) + eps
        case EpsPlacement.MAX_INSIDE_ROOT:
            return take(_greater(spread, eps))
        case EpsPlacement.MAX_OUTSIDE_ROOT:
            return _greater(take(spread), eps)
        case EpsPlacement.ZERO_TO_ZERO:
            return take(spread) if plain(spread) else Fraction(1)


def _renormed(
    spec: NormSpec, i: Index, normalized: Number, center: Number, spread: Number, given: Parameters
) -> Number:
    rule, renorm = spec.running, spec.renorm
    assert rule is not None, "Batch Renorm keeps running statistics"
    assert renorm is not None, "asked of Batch Renorm"
    mean, var = Grid.read(given.running_mean), Grid.read(given.running_var)
    place = tuple(i[axis] for axis in rule.axes.of(len(i)))
    old_root = plain(_divisor(spec, var.at[place]))
    r = plain(_divisor(spec, spread)) / old_root
    d = (plain(center) - plain(mean.at[place])) / old_root
    r = max(r, Fraction(renorm.rmin)) if renorm.rmin is not None else r
    r = min(r, Fraction(renorm.rmax)) if renorm.rmax is not None else r
    if renorm.dmax is not None:
        d = max(min(d, Fraction(renorm.dmax)), -Fraction(renorm.dmax))
    return normalized * r + d


def _affine(spec: NormSpec, normalized: Grid, given: Parameters) -> Grid:
    if given.weight is None and given.bias is None:
        return normalized
    if spec.affine is None:
        raise ArgumentError(
            say("{kind} has no weight and bias; got some. Leave them out.", kind=spec.kind)
        )
    axes = spec.affine.of(len(normalized.shape))
    weight = None if given.weight is None else Grid.read(given.weight)
    bias = None if given.bias is None else Grid.read(given.bias)
    out: dict[Index, Number] = {}
    for i, number in normalized.at.items():
        place = tuple(i[axis] for axis in axes)
        if spec.groups is not None and spec.groups.affine:
            place = (_group(spec, i, normalized.shape),)
        if weight is not None:
            number = number * (weight.at[place] + Fraction(spec.weight_offset))
        out[i] = number if bias is None else number + bias.at[place]
    return Grid(normalized.shape, out)


def _windowed(spec: NormSpec, window: Window, x: Grid) -> Grid:
    (axis,) = spec.reduced.of(len(x.shape))
    out: dict[Index, Number] = {}
    for i, number in x.at.items():
        near = range(
            max(0, i[axis] - window.before), min(x.shape[axis], i[axis] + window.after + 1)
        )
        squares = [x.at[(*i[:axis], j, *i[axis + 1 :])] for j in near]
        inner = _sum([value * value for value in squares]) * Fraction(window.alpha)
        out[i] = number / power(inner + Fraction(window.k), Fraction(window.beta))
    return Grid(x.shape, out)


def _spectral(spec: NormSpec, weight: Grid, given: Parameters) -> Grid:
    """The weight over u.Wv, with u and v as they are given."""
    assert spec.spectral is not None, "asked of SpectralNorm"
    axis = spec.spectral.axis % len(weight.shape)
    u, v = Grid.read(given.u), Grid.read(given.v)
    rest = [range(n) for i, n in enumerate(weight.shape) if i != axis]
    column = {others: j for j, others in enumerate(product(*rest))}
    sigma = _sum(
        [
            u.at[(i[axis],)] * v.at[(column[(*i[:axis], *i[axis + 1 :])],)] * number
            for i, number in weight.at.items()
        ]
    )
    return Grid(weight.shape, {i: number / sigma for i, number in weight.at.items()})


def _eps(spec: NormSpec) -> Fraction:
    return Fraction(1, 2**52) if spec.eps is None else Fraction(spec.eps)


def _mean(values: list[Number]) -> Number:
    return _sum(values) / Fraction(len(values))


def _variance(values: list[Number], estimator: Estimator) -> Number:
    center = _mean(values)
    squares = _sum([(value - center) * (value - center) for value in values])
    lost = 0 if estimator is Estimator.UNBIASED_OR_ZERO and len(values) == 1 else estimator.lost
    return squares / Fraction(len(values) - lost)


def _blend(old: Number, new: Number, momentum: Fraction) -> Number:
    return old + (new - old) * momentum


def _greater(number: Number, least: Fraction) -> Number:
    return number if plain(number) >= least else least


def _itself(number: Number) -> Number:
    return number


def _sum(values: list[Number]) -> Number:
    total: Number = Fraction(0)
    for value in values:
        total = total + value
    return total


def _number(value: object) -> Number:
    return value if isinstance(value, Dual) else Fraction(value)  # pyright: ignore


def _get(nested: Nested, index: Index) -> object:
    for place in index:
        nested = nested[place]
    return nested


def _indices(shape: Sequence[int]) -> list[Index]:
    return list(product(*(range(n) for n in shape)))
