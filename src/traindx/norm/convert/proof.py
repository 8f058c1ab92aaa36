"""That a layer answers the same before and after, on random inputs.

Twice, where it can be: by our own formulas in float64, with the numbers as they are read from the
written file; and by the frameworks themselves in float32. What may differ is rounding,
c * eps * (1 + |mean| / std) of the sizes that go into an output.
Shapes: inputs are made with their channels on axis 1 and moved to where a layer has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from traindx.messages import Message, say
from traindx.norm.arrays import Array
from traindx.norm.convert.carrying import Carried, Wish
from traindx.norm.convert.frameworks.framework import Framework
from traindx.norm.convert.purpose import Purpose
from traindx.norm.convert.state import BIAS, DIRECTION, KERNEL, MEAN, VAR, WEIGHT, NormState, U, V
from traindx.norm.reference import (
    PowerVectors,
    RunningStats,
    evaluate,
    forward,
    statistics,
    updated,
)
from traindx.norm.spec import Axes, NormSpec

ROUNDINGS = 8
"""c: roundings that two ways of computing one output may be apart."""
_SAMPLES, _PLACES = 3, 4
_TRIED = 8
"""Channels that a training step is computed for."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One comparison.

    Attributes:
        layer: The name in the source.
        by: Who computed it: `reference`, or the two frameworks.
        difference: The largest of an output.
        excess: The largest over what rounding allows; at most 1 proves.
    """

    layer: str
    by: str
    difference: float
    excess: float

    @property
    def holds(self) -> bool:
        """Whether nothing but rounding differs."""
        return bool(self.excess <= 1)


def by_reference(carried: Carried, after: NormState, seed: int) -> Proof:
    """Our formulas on both sides; `after` is what the written file holds."""
    before = carried.before
    if before.spec.kind in {"WeightNorm", "SpectralNorm"}:
        one, other = _weight(before), _weight(after)
        return _compared(before.name, "reference", one, other, np.abs(one) + np.abs(one).max())
    before, after = _settled(before), _settled(after)
    x = _input(before, after, seed)
    one, other = (_answer(state, x) for state in (before, after))
    return _compared(before.name, "reference", one, other, _size(before, x), _eps(before, after))


def _settled(state: NormState) -> NormState:
    """With the eps of float32 where it is that of the type computed in."""
    if state.spec.eps is not None:
        return state
    return replace(state, spec=replace(state.spec, eps=float(np.finfo(np.float32).eps)))


def by_frameworks(
    carried: Carried, after: NormState, source: Framework, target: Framework, seed: int
) -> Proof | Message | None:
    """The frameworks' own layers on both sides; why not, where they cannot be asked."""
    before = carried.before
    if before.spec.kind in {"WeightNorm", "SpectralNorm"} or before.spec.weight_offset:
        return None
    if not (_installed(source) and _installed(target)):
        return None
    x = _input(before, after, seed).astype(np.float32)
    one, other = (_asked(side, state, x) for side, state in ((source, before), (target, after)))
    if isinstance(one, Message) or isinstance(other, Message):
        return one if isinstance(one, Message) else other
    names = f"{source.name}, {target.name}"
    return _compared(before.name, names, one, other, _size(before, x), _eps(before))


def _asked(framework: Framework, state: NormState, x: Array) -> Array | Message:
    moved = np.ascontiguousarray(_moved(x, state.spec, 1))
    try:
        return _moved(framework.runs(_narrowed(state), moved), state.spec, -1)
    except Exception as error:  # a framework of the user's may fail in any way
        why = f"{type(error).__name__}: {error}"[:160]
        return say("{framework} could not be asked ({why})", framework=framework.name, why=why)


def _installed(framework: Framework) -> bool:
    return all(find_spec(package) is not None for package in framework.packages)


def _narrowed(state: NormState) -> NormState:
    """In float32, which every framework computes in."""
    arrays = {role: values.astype(np.float32) for role, values in state.arrays.items()}
    return replace(state, arrays=arrays)


def of_training(carried: Carried, after: NormState, wish: Wish, seed: int) -> Proof | None:
    """A step of both on one batch: the statistics, each by its own estimator, stay as they were."""
    before = carried.before
    if wish.purpose is not Purpose.TRAINING or before.spec.running is None or not before.arrays:
        return None
    n, channels = wish.elements or 64, min(before.channels, _TRIED)
    x = np.random.default_rng(seed).normal(0.5, 2.0, (n, channels))
    stats: list[RunningStats] = []
    for state in (before, after):
        spec = _with_channels_on(state.spec, 1)
        kept = RunningStats(state.arrays[MEAN][:channels], state.arrays[VAR][:channels])
        stats.append(updated(spec, kept, x))
    factor = _factor(before.spec, after.spec, n)
    one = np.concatenate([stats[0].mean, np.asarray(stats[0].var) * factor])
    other = np.concatenate([stats[1].mean, stats[1].var])
    size = np.abs(one) + 1e-3
    return _compared(before.name, "training", one, other, size, _eps(before, after))


def _factor(before: NormSpec, after: NormSpec, n: int) -> float:
    assert before.running is not None
    assert after.running is not None
    return (n - before.running.variance.lost) / (n - after.running.variance.lost)


# -- inputs ---------------------------------------------------------------------------------------


def _input(state: NormState, after: NormState, seed: int) -> Array:
    """Random numbers where the layer works: around its running mean, as wide as its variance."""
    draw = np.random.default_rng(seed).standard_normal
    spec = state.spec
    if spec.kind in {"LayerNorm", "RMSNorm"}:
        last = state.shape or (6,) * len(spec.reduced.named)
        return _rounded(draw((_SAMPLES, _PLACES, *last)) + 0.5)
    if spec.kind == "LocalResponseNorm":
        return _rounded(3 * draw((_SAMPLES, 9, 3, 2)))
    groups = spec.groups.count if spec.groups and spec.groups.count else 1
    channels = state.channels or max(groups, 1) * 3
    more = max(_axes_needed(spec), _axes_needed(after.spec)) - 3
    x = draw((_SAMPLES, channels, _PLACES, *(2,) * more)) + (0.5 if spec.running is None else 0.0)
    if MEAN in state.arrays:
        along = (-1, *(1,) * (x.ndim - 2))
        mean, var = (state.arrays[r].astype(np.float64).reshape(along) for r in (MEAN, VAR))
        x = mean + np.sqrt(var + (spec.eps or 0.0)) * x
    return _rounded(x)


def _axes_needed(spec: NormSpec) -> int:
    """Axes an input must have for its channels to stand where the layer has them; 3 at least."""
    axis = _channel_axis(spec)
    return 3 if axis is None else max(3, axis + 1, -axis)


def _rounded(x: Array) -> Array:
    """To float32, so that all are given the same numbers."""
    return x.astype(np.float32).astype(np.float64)


def _channel_axis(spec: NormSpec) -> int | None:
    """Where a layer has its channels; None where it has none of their own."""
    if spec.window is not None:
        return spec.reduced.named[0]
    if spec.kind in {"BatchNorm", "GroupNorm", "InstanceNorm"} and spec.affine is not None:
        return spec.affine.named[0]
    return None


def _moved(x: Array, spec: NormSpec, way: int) -> Array:
    """The channels from axis 1 to the layer's own (`way` 1), or back (-1)."""
    axis = _channel_axis(spec)
    if axis is None:
        return x
    return np.moveaxis(x, 1, axis) if way > 0 else np.moveaxis(x, axis, 1)


# -- answers --------------------------------------------------------------------------------------


def _answer(state: NormState, x: Array) -> Array:
    moved = _moved(x, state.spec, 1)
    weight, bias = state.arrays.get(WEIGHT), state.arrays.get(BIAS)
    if state.spec.running is not None and MEAN in state.arrays:
        kept = RunningStats(state.arrays[MEAN], state.arrays[VAR])
        y = evaluate(state.spec, kept, moved, weight, bias)
    else:
        y = forward(state.spec, moved, weight, bias)
    return _moved(np.asarray(y), state.spec, -1)


def _weight(state: NormState) -> Array:
    """What a weight is after its normalization, as torch lays it."""
    spec = _with_channels_on(state.spec, 0)
    if DIRECTION in state.arrays:
        return np.asarray(forward(spec, state.arrays[DIRECTION], state.arrays[WEIGHT]))
    vectors = PowerVectors(state.arrays[U].ravel(), state.arrays[V].ravel())
    if state.spec.eps_placement.name == "INSIDE_ROOT":  # Flax: a step more in every evaluation
        return np.asarray(forward(spec, state.arrays[KERNEL], running=vectors))
    return np.asarray(evaluate(spec, vectors, state.arrays[KERNEL]))


def _with_channels_on(spec: NormSpec, axis: int) -> NormSpec:
    """The same layer with its channels on another axis."""
    if spec.spectral is not None:
        return replace(spec, spectral=replace(spec.spectral, axis=axis))
    running = spec.running and replace(spec.running, axes=Axes((axis,)))
    return replace(spec, reduced=Axes((axis,), others=True), affine=Axes((axis,)), running=running)


# -- how far apart --------------------------------------------------------------------------------


def _size(state: NormState, x: Array) -> Array:
    """(1 + |mean| / std) times the sizes that are added up to an output, channels on axis 1."""
    weight, bias = state.arrays.get(WEIGHT), state.arrays.get(BIAS)
    w = 1.0 if weight is None else np.abs(weight.astype(np.float64) + state.spec.weight_offset)
    b = 0.0 if bias is None else np.abs(bias.astype(np.float64))
    shape = (-1, *(1,) * (x.ndim - 2)) if _channel_axis(state.spec) is not None else state.shape
    w, b = (np.reshape(v, shape) if np.ndim(v) else v for v in (w, b))
    if MEAN in state.arrays:
        mean, var = (state.arrays[r].astype(np.float64).reshape(shape) for r in (MEAN, VAR))
        std = np.sqrt(var + (state.spec.eps or 0.0))
        normalized, ratio = np.abs((x - mean) / std), np.abs(mean) / std
    elif state.spec.window is not None:
        normalized, ratio = np.abs(x), np.zeros(1)
    else:
        normalized, ratio = np.abs(_answer(replace(state, arrays={}), x)), _ratio(state.spec, x)
    return np.asarray((1 + ratio) * ((1 + normalized) * w + b))


def _ratio(spec: NormSpec, x: Array) -> Array:
    """The largest |mean| over standard deviation of a set."""
    found = statistics(spec, _moved(x, spec, 1))
    std = np.sqrt(np.asarray(found.variance(spec.variance)) + 1e-12)
    ratios: Array = np.abs(np.asarray(found.mean)) / std
    return ratios.max()


def _eps(*states: NormState) -> float:
    """The coarsest rounding among float32 and the arrays' own types."""
    kinds = [a.dtype for s in states for a in s.arrays.values() if a.dtype.kind == "f"]
    own = max((float(np.finfo(kind).eps) for kind in kinds), default=0.0)
    return max(own, float(np.finfo(np.float32).eps))


def _compared(
    layer: str, by: str, one: Array, other: Array, size: Array, eps: float | None = None
) -> Proof:
    if one.shape != other.shape or not np.isfinite(other).all():
        return Proof(layer, by, float("inf"), float("inf"))
    rounding = eps or float(np.finfo(np.float32).eps)
    apart = np.abs(one - other)
    return Proof(
        layer,
        by,
        float(apart.max(initial=0.0)),
        float((apart / (ROUNDINGS * rounding * size)).max()),
    )


def worst(proofs: Iterable[Proof], by: Callable[[Proof], bool]) -> Proof | None:
    """The proof that comes closest to what rounding allows, among some."""
    return max(filter(by, proofs), key=lambda proof: proof.excess, default=None)
