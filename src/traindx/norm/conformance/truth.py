"""What a layer should answer, and how far rounding may carry an answer from it.

Truth is the float64 reference on the very numbers that the layer was given. The bound on an error
is `SLACK * eps * (1 + |mean| / std)`, times the size of what is computed: the mean of numbers is
known to eps times their size, and is divided by the std. No careful layer does better in its own
type, so a tolerance that is the same for all inputs is too wide for some and too narrow for others
(Chan, Golub and LeVeque 1983, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from traindx.norm.affine import gathered_parameter, parameter
from traindx.norm.choices import Scale
from traindx.norm.conformance.kinds import resolved
from traindx.norm.conformance.precision import EPS, TINY, WIDE, Numbers
from traindx.norm.conformance.target import Answer, Call
from traindx.norm.moments import layout, scale_of, statistics
from traindx.norm.passes import RunningStats, constant_pass, is_empty, training_pass
from traindx.norm.reference import backward, evaluate, forward, fresh, updated
from traindx.norm.scaling import rates
from traindx.norm.spec import NormSpec

SLACK = 16
"""Roundings that may add up: sums of some hundred numbers one after another stay below."""
_LAST = 4
"""Roundings to a half type on the way out: normalized value, weight, bias, sum."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One array of an answer: what it should be, and how far it may be from it."""

    value: Numbers
    bound: Numbers


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far one array is from what it should be.

    Attributes:
        aspect: Which: forward, grad_x, grad_weight, grad_bias, running_mean, running_var.
        ratio: The greatest error over its bound; infinite if a number is missing.
        error: The greatest error where the answer is finite.
        place: Where the ratio is greatest.
        got: The number there.
        right: What it should be.
        lost: How many numbers are not finite that should be.
    """

    aspect: str
    ratio: float
    error: float
    place: tuple[int, ...]
    got: float
    right: float
    lost: int


def truth(spec: NormSpec, call: Call) -> dict[str, Expected]:
    """Everything that an answer to `call` can be held against, by aspect.

    Raises:
        ArgumentError: The layer has no output for such an input.
    """
    spec = resolved(spec, call.dtype)
    if is_empty(spec, call.x):
        return {"forward": Expected(call.x, call.x)}
    if spec.window is not None:
        return _of_window(spec, call)
    if not call.training and spec.running is not None:
        return _of_evaluation(spec, call)
    return _of_training(spec, call)


def answered(call: Call, answer: Answer) -> dict[str, Numbers]:
    """The arrays of an answer by aspect."""
    found: dict[str, Numbers | None] = {
        "forward": answer.y,
        "grad_x": answer.dx,
        "grad_weight": answer.dweight,
        "grad_bias": answer.dbias,
    }
    if answer.running is not None and call.training:
        found["running_mean"], found["running_var"] = answer.running
    return {name: values for name, values in found.items() if values is not None}


def deviations(spec: NormSpec, call: Call, answer: Answer) -> dict[str, Deviation]:
    """How far each array of an answer is from what it should be."""
    right, got = truth(spec, call), answered(call, answer)
    return {name: deviation(name, right[name], got[name]) for name in right if name in got}


def deviation(aspect: str, right: Expected, got: Numbers) -> Deviation:
    """The worst place of one array."""
    if got.shape != right.value.shape:
        return Deviation(aspect, np.inf, np.inf, (), np.nan, np.nan, got.size)
    if not got.size:
        return Deviation(aspect, 0.0, 0.0, (), np.nan, np.nan, 0)
    with np.errstate(all="ignore"):
        error = np.abs(got - right.value)
        ratio = np.where(error == 0, 0.0, error / right.bound)
    finite = np.isfinite(got)
    ratio = np.where(np.isfinite(ratio) & finite, ratio, np.inf)
    place = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    return Deviation(
        aspect,
        float(ratio[place]),
        float(np.max(error[finite])) if finite.any() else np.inf,
        tuple(int(i) for i in place),
        float(got[place]),
        float(right.value[place]),
        int(np.sum(~finite & np.isfinite(right.value))),
    )


def condition(spec: NormSpec, x: Numbers) -> Numbers:
    """1 + |mean| / std of the set that each element is in, with the eps in the std."""
    seen, batch = layout(spec, x.shape), statistics(spec, x)
    root = rates(spec, scale_of(spec, batch))[0]
    mean = batch.mean if spec.scale is Scale.STANDARD_DEVIATION else 0 * batch.mean
    whole = np.broadcast_to(1 + np.abs(mean) * root, seen.seen)
    return np.asarray(seen.join(np.ascontiguousarray(whole)))


def _of_training(spec: NormSpec, call: Call) -> dict[str, Expected]:
    running = RunningStats(*call.running) if call.running else None
    mask = None if call.mask is None else np.broadcast_to(call.mask != 0, call.x.shape)
    normalized = training_pass(spec, call.x, running, mask).output()
    factor, shift = _affine(spec, call)
    ill = np.ones_like(call.x) if mask is not None else condition(spec, call.x)
    if not spec.centered:
        ill = ill * (1 + np.abs(normalized))  # the std is what is ill-conditioned
    y = forward(spec, call.x, call.weight, call.bias, running=running, mask=call.mask)
    flat = np.abs(factor) * (1 + np.abs(normalized)) + np.abs(shift)
    found = {"forward": _near(call, y, flat + np.abs(factor) * ill, flat)}
    if call.dy is not None and mask is None:
        found |= _gradients(spec, call, normalized, ill)
    if spec.running is not None and mask is None:
        found |= _running(spec, call)
    return found


def _gradients(
    spec: NormSpec, call: Call, normalized: Numbers, ill: Numbers
) -> dict[str, Expected]:
    assert call.dy is not None, "asked for by the caller"
    running = RunningStats(*call.running) if call.running else None
    right = backward(spec, call.dy, call.x, call.weight, running=running)
    seen, batch = layout(spec, call.x.shape), statistics(spec, call.x)
    root = np.broadcast_to(rates(spec, scale_of(spec, batch))[0], seen.seen)
    factor, _ = _affine(spec, call)
    steep = np.max(np.abs(call.dy)) * np.max(np.abs(factor)) * seen.join(np.array(root))
    whole = steep * (1 + np.abs(normalized)) * (1 + np.max(np.abs(normalized)))
    found = {"grad_x": _near(call, right.x, whole * ill, whole)}
    if spec.affine is not None and right.weight is not None and right.bias is not None:
        dy, inner = np.abs(call.dy), np.abs(normalized)
        flat = gathered_parameter(spec, "weight", dy * (1 + inner))
        bent = gathered_parameter(spec, "weight", dy * (inner + ill))
        found["grad_weight"] = _near(call, right.weight, bent, flat)
        flat = gathered_parameter(spec, "bias", dy)
        found["grad_bias"] = _near(call, right.bias, flat, flat)
    return found


def _running(spec: NormSpec, call: Call) -> dict[str, Expected]:
    rule, unit = spec.running, EPS[WIDE[call.dtype]]
    assert rule is not None, "asked for by the caller"
    before = RunningStats(*call.running) if call.running else fresh(spec, call.x.shape)
    after = updated(spec, before, call.x)
    batch = updated(replace(spec, running=replace(rule, momentum=1.0)), before, call.x)
    mean, var = np.abs(batch.mean), np.abs(batch.var)
    m = 1.0 if rule.momentum is None else rule.momentum
    ill = np.where(var > 0, 1 + mean / np.sqrt(np.where(var > 0, var, 1.0)), 1.0)
    sizes = np.abs(before.mean) + m * np.max(np.abs(call.x)), np.abs(before.var) + m * var
    # The mean that deviations are taken from is itself off by a rounding of its size.
    shifted = m * (SLACK * unit * mean) ** 2
    right = _near(call, np.asarray(after.var), sizes[1] + m * var * ill, sizes[1])
    return {
        "running_mean": _near(call, np.asarray(after.mean), sizes[0], sizes[0]),
        "running_var": Expected(right.value, right.bound + shifted),
    }


def _of_evaluation(spec: NormSpec, call: Call) -> dict[str, Expected]:
    before = RunningStats(*call.running) if call.running else fresh(spec, call.x.shape)
    y = evaluate(spec, before, call.x, call.weight, call.bias)
    normalized = constant_pass(spec, call.x, before).output()
    factor, shift = _affine(spec, call)
    assert spec.running is not None, "asked for by the caller"
    axes = spec.running.axes.of(call.x.ndim)
    extents = [n if i in axes else 1 for i, n in enumerate(call.x.shape)]
    mean: Numbers = np.reshape(np.abs(np.asarray(before.mean)), extents)
    root = rates(spec, np.asarray(before.var))[0].reshape(extents)
    flat = np.abs(factor) * (np.abs(normalized) + 2 * mean * root) + np.abs(shift)
    found = {"forward": _near(call, y, flat, flat)}
    if call.dy is not None:
        right = backward(spec, call.dy, call.x, call.weight, running=before, training=False).x
        found["grad_x"] = _near(call, right, np.abs(right), np.abs(right))
    return found


def _of_window(spec: NormSpec, call: Call) -> dict[str, Expected]:
    assert spec.window is not None, "asked for by the caller"
    y, steps = forward(spec, call.x), 1 + spec.window.beta
    found = {"forward": _near(call, y, steps * np.abs(y), steps * np.abs(y))}
    if call.dy is not None:
        right = backward(spec, call.dy, call.x).x
        size = steps * (np.max(np.abs(right)) + np.max(np.abs(call.dy)))
        found["grad_x"] = _near(call, right, size, size)
    return found


def _affine(spec: NormSpec, call: Call) -> tuple[Numbers, Numbers]:
    """What multiplies and what is added, shaped to broadcast."""
    if call.weight is None:
        factor = np.ones(1)
    else:
        factor = np.asarray(parameter(spec, "weight", call.weight, call.x)) + spec.weight_offset
    if call.bias is None:
        return factor, np.zeros(1)
    return factor, np.asarray(parameter(spec, "bias", call.bias, call.x))


def _near(call: Call, value: Numbers, size: Any, narrow: Any) -> Expected:
    """What an array should be, to the roundings of numbers of this size.

    A half type is computed in float32 and rounded a few times on the way out: that is of the size
    `narrow`, in which no mean stands. Less than the least normal number may be flushed to 0.
    """
    bound = SLACK * EPS[WIDE[call.dtype]] * size + TINY[call.dtype]
    if call.dtype != WIDE[call.dtype]:
        bound = bound + _LAST * EPS[call.dtype] * narrow
    return Expected(value, np.broadcast_to(bound, value.shape))
