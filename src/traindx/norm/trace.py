"""Every intermediate of one layer on somebody's own numbers, by name, formula and value.

What a student checks homework against, and an engineer a port. The numbers are those of the
reference; nothing is computed twice, so a trace cannot disagree with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from traindx.errors import ArgumentError
from traindx.messages import say
from traindx.norm import moments
from traindx.norm.arrays import Array, ArrayLike, namespace, read
from traindx.norm.choices import EpsPlacement, Estimator, Scale
from traindx.norm.moments import Statistics, layout, scale_of
from traindx.norm.passes import RunningStats, passes_unchanged, read_mask, training_pass
from traindx.norm.reference import backward, evaluate, forward, fresh, power_iterated, updated
from traindx.norm.scaling import Scaling
from traindx.norm.spec import NormSpec, Renorm
from traindx.norm.spectral import PowerVectors, as_matrix


@dataclass(frozen=True, slots=True)
class Line:
    """One intermediate.

    Attributes:
        name: What it is called: a framework's own word where there is one.
        formula: How it follows from those before.
        value: The numbers, in float64.
    """

    name: str
    formula: str
    value: Array


@dataclass(frozen=True, slots=True)
class Given:
    """What a layer is traced on.

    Attributes:
        x: The input; for a weight normalization the weight (its direction).
        weight: One value for each index of the affine axes.
        bias: As `weight`.
        running: Running statistics before the batch; fresh ones if None. For SpectralNorm u and v.
        mask: True where an element counts.
        seed: The gradient that arrives at the output; None asks for no gradients.
    """

    x: ArrayLike
    weight: ArrayLike | None = None
    bias: ArrayLike | None = None
    running: RunningStats | PowerVectors | None = None
    mask: ArrayLike | None = None
    seed: ArrayLike | None = None


def trace(spec: NormSpec, given: Given) -> list[Line]:
    """Every intermediate of one training step, then evaluation, then gradients if asked for.

    Raises:
        ArgumentError: The layer refuses what it is given.
    """
    x = read("the input", given.x)
    return [
        Line("x", f"input of shape {tuple(x.shape)}", x),
        *_forward(spec, given, x),
        *_running(spec, given, x),
        *_gradients(spec, given, x),
    ]


# -- forward --------------------------------------------------------------------------------------


def _forward(spec: NormSpec, given: Given, x: Array) -> Iterator[Line]:
    if passes_unchanged(spec, x):
        yield Line("output", "x: there is nothing to normalize", x)
    elif spec.window is not None:
        yield from _windowed(spec, x)
    elif spec.spectral is not None:
        yield from _spectral(spec, given, x)
    else:
        yield from _normalized(spec, given, x)


def _normalized(spec: NormSpec, given: Given, x: Array) -> Iterator[Line]:
    mask = read_mask(x, given.mask)
    batch = moments.statistics(spec, x, mask)
    yield from _statistics(spec, batch, x)
    taken = training_pass(spec, x, _stats(spec, given, x), mask)
    scaling = taken.scaling
    plain = scaling
    if spec.renorm is not None:
        plain = training_pass(replace(spec, renorm=None), x, None, mask).scaling
    yield Line("divisor", _divisor(spec), 1 / plain.rates[0])
    if spec.centered:
        yield Line("centered", "x - mean", taken.seen.join(scaling.z))
    if spec.renorm is not None:
        yield Line("r", f"divisor / running root, {_bounds(spec.renorm)}", _ratio(scaling, plain))
        yield Line("d", "(mean - running mean) / running root", scaling.shift)
    normalized = taken.output()
    yield Line("normalized", _normalizing(spec), normalized)
    if given.weight is not None or given.bias is not None:
        output = forward(
            spec,
            x,
            given.weight,
            given.bias,
            running=_stats(spec, given, x),
            mask=given.mask,
        )
        yield Line("output", _affine(spec, given), output)


def _statistics(spec: NormSpec, batch: Statistics, x: Array) -> Iterator[Line]:
    over = _over(spec, x)
    count = batch.count
    if spec.scale is Scale.SUM_OF_MAGNITUDES:
        yield Line("sum_of_magnitudes", f"sum |x| over {over}", batch.m2)
        return
    if not spec.centered and spec.scale is not Scale.STANDARD_DEVIATION:
        yield Line("sum_of_squares", f"sum x^2 over {over}", batch.m2)
        if spec.scale is Scale.ROOT_MEAN_SQUARE:
            yield Line("mean_square", "sum_of_squares / n", scale_of(spec, batch))
        return
    yield Line("mean", f"sum x / n over {over}", batch.mean)
    yield Line("sum_of_squares", "sum (x - mean)^2 over the same", batch.m2)
    yield Line("variance_biased", "sum_of_squares / n", batch.variance(Estimator.BIASED))
    if isinstance(count, int) and count > 1:
        unbiased = batch.variance(Estimator.UNBIASED)
        yield Line("variance_unbiased", "sum_of_squares / (n - 1)", unbiased)


def _over(spec: NormSpec, x: Array) -> str:
    seen = layout(spec, x.shape)
    axes = ", ".join(map(str, spec.reduced.of(x.ndim)))
    cut = "" if spec.groups is None else f", axis {seen.cut} cut into groups ({_groups(spec)})"
    return f"axes {axes}{cut}; n = {seen.count}"


def _groups(spec: NormSpec) -> str:
    assert spec.groups is not None, "asked for by the caller"
    return spec.groups.order.value


_SPREAD = {
    Scale.STANDARD_DEVIATION: "variance",
    Scale.ROOT_MEAN_SQUARE: "mean_square",
    Scale.EUCLIDEAN_NORM: "sum_of_squares",
    Scale.SUM_OF_MAGNITUDES: "sum_of_magnitudes",
}


def _divisor(spec: NormSpec) -> str:
    """How the divisor follows from the spread."""
    spread, eps = _SPREAD[spec.scale], "machine_eps" if spec.eps is None else f"{spec.eps:g}"
    if spec.scale is Scale.STANDARD_DEVIATION:
        spread = f"variance_{'unbiased' if spec.variance.lost else 'biased'}"
    root = spread if spec.scale is Scale.SUM_OF_MAGNITUDES else f"sqrt({spread})"
    return {
        EpsPlacement.INSIDE_ROOT: f"sqrt({spread} + {eps})",
        EpsPlacement.OUTSIDE_ROOT: f"{root} + {eps}",
        EpsPlacement.MAX_INSIDE_ROOT: f"sqrt(max({spread}, {eps}))",
        EpsPlacement.MAX_OUTSIDE_ROOT: f"max({root}, {eps})",
        EpsPlacement.NONE: root,
        EpsPlacement.ZERO_TO_ZERO: f"{root}, or 1 where it is 0",
    }[spec.eps_placement]


def _ratio(corrected: Scaling, plain: Scaling) -> Array:
    return corrected.rates[0] / plain.rates[0]


def _bounds(renorm: Renorm) -> str:
    low = "0" if renorm.rmin is None else f"{renorm.rmin:g}"
    high = "inf" if renorm.rmax is None else f"{renorm.rmax:g}"
    return f"kept in [{low}, {high}]"


def _normalizing(spec: NormSpec) -> str:
    plain = f"{'centered' if spec.centered else 'x'} / divisor"
    return plain if spec.renorm is None else f"{plain} * r + d"


def _affine(spec: NormSpec, given: Given) -> str:
    formula = "normalized"
    if given.weight is not None:
        factor = f"({spec.weight_offset:g} + weight)" if spec.weight_offset else "weight"
        formula = f"{factor} * normalized"
    return formula if given.bias is None else f"{formula} + bias"


def _windowed(spec: NormSpec, x: Array) -> Iterator[Line]:
    window = spec.window
    assert window is not None, "asked for by the caller"
    (axis,) = spec.reduced.of(x.ndim)
    output = forward(spec, x)
    around = f"{window.before} before to {window.after} after along axis {axis}"
    yield Line(
        "output",
        f"x / ({window.k:g} + {window.alpha:g} * sum x^2 from {around}) ^ {window.beta:g}",
        output,
    )


def _spectral(spec: NormSpec, given: Given, x: Array) -> Iterator[Line]:
    assert spec.spectral is not None, "asked for by the caller"
    vectors = power_iterated(spec, given.running if _is_power(given) else None, x)
    matrix = as_matrix(spec, x)
    xp = namespace(matrix)
    u, v = (
        read(name, vector, like=matrix) for name, vector in (("u", vectors.u), ("v", vectors.v))
    )
    iterations = spec.spectral.iterations
    first = "u = W v / |W v|, v = u W / |u W|"
    second = "v = u W / |u W|, u = W v / |W v|"
    yield Line("W", f"x as a matrix of shape {tuple(matrix.shape)}", matrix)
    order = first if spec.spectral.u_first else second
    yield Line("u", f"after {iterations} of: {order}", u)
    yield Line("v", "from the same", v)
    sigma = xp.sum(xp.reshape(u, (-1, 1)) * matrix * xp.reshape(v, (1, -1)))
    yield Line("sigma", "u W v", sigma)
    yield Line("output", "x / sigma", forward(spec, x, running=given.running))


def _is_power(given: Given) -> bool:
    return isinstance(given.running, PowerVectors)


# -- running statistics and evaluation ------------------------------------------------------------


def _stats(spec: NormSpec, given: Given, x: Array) -> RunningStats | None:
    if spec.running is None or isinstance(given.running, PowerVectors):
        return None
    return given.running or fresh(spec, tuple(x.shape))


def _running(spec: NormSpec, given: Given, x: Array) -> Iterator[Line]:
    before = _stats(spec, given, x)
    if before is None or spec.running is None:
        return
    rule = spec.running
    after = updated(spec, before, x, mask=given.mask)
    kind = "given" if given.running is not None else "fresh: mean 0, variance 1"
    yield Line("running_mean_before", kind, read("running_mean", before.mean))
    yield Line("running_var_before", kind, read("running_var", before.var))
    momentum = f"{rule.momentum:g}" if rule.momentum is not None else "1 / batches"
    old = f"(1 - {momentum})"
    yield Line(
        "running_mean_after",
        f"{old} * before + {momentum} * mean",
        read("running_mean", after.mean),
    )
    variance = "variance_unbiased" if rule.variance.lost else "variance_biased"
    step = f"{old} * before + {momentum} * {variance}"
    if rule.of_roots:
        step = f"({old} * root before + {momentum} * divisor)^2 - eps"
    yield Line("running_var_after", step, read("running_var", after.var))
    if rule.counted:
        count = read("num_batches_tracked", after.num_batches_tracked)
        yield Line("num_batches_tracked", "before + 1", count)
    if not namespace(x).any(read("running_var", after.var) < 0):
        output = evaluate(spec, after, x, given.weight, given.bias)
        yield Line("eval_output", "the same input in evaluation, by the statistics after", output)


# -- gradients ------------------------------------------------------------------------------------


def _gradients(spec: NormSpec, given: Given, x: Array) -> Iterator[Line]:
    if given.seed is None:
        return
    seed = read("the gradient", given.seed, like=x)
    if tuple(seed.shape) != tuple(x.shape):
        raise ArgumentError(
            say(
                "The gradient at the output needs the output's shape {wanted}; got {shape}.",
                wanted=tuple(x.shape),
                shape=tuple(seed.shape),
            )
        )
    running = given.running
    if isinstance(running, PowerVectors):
        running = power_iterated(spec, running, x)
    elif spec.renorm is not None:
        running = _stats(spec, given, x)
    found = backward(spec, seed, x, given.weight, running=running, mask=given.mask)
    yield Line("grad_output", "given", seed)
    yield Line("grad_input", "gradient of <grad_output, output> by x", found.x)
    if given.weight is not None and found.weight is not None:
        yield Line("grad_weight", "by weight", found.weight)
    if given.bias is not None and found.bias is not None:
        yield Line("grad_bias", "by bias", found.bias)
