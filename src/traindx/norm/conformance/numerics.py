"""Explains errors that are no other formula: how a variance is taken, and in which type.

Such an error cannot be predicted to the digit, since it depends on the order of a sum. It is told
by its size: what the layer would compute in that way, in its own type, is emulated, and the errors
of both are compared on every rung of the ladder of means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from traindx.messages import say
from traindx.norm.choices import Accumulation, Passes
from traindx.norm.conformance.kinds import resolved
from traindx.norm.conformance.naming import Difference, number
from traindx.norm.conformance.precision import Numbers, numbers
from traindx.norm.conformance.target import Answer, Call
from traindx.norm.conformance.truth import SLACK, truth
from traindx.norm.emulate import emulate
from traindx.norm.spec import NormSpec

_APART = 100.0
"""Sums in another order make errors that differ by less than this factor."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of the ladder of means: |mean| / std, the question and its answer."""

    height: float
    call: Call
    answer: Answer


def one_pass(spec: NormSpec, rungs: Sequence[Rung]) -> Difference | None:
    """The variance as E[x^2] - E[x]^2, clipped or not, if that makes errors of this size."""
    if not spec.centered or spec.window is not None:
        return None
    lost = any(not np.all(np.isfinite(rung.answer.y)) for rung in rungs)
    for passes in (Passes.ONE, Passes.ONE_CLIPPED):
        clipped = passes is Passes.ONE_CLIPPED
        if lost is clipped or not _alike(replace(spec, passes=passes), rungs):
            continue
        if clipped:
            words = say("one-pass variance, E[x^2] - E[x]^2, and 0 where that is negative")
        else:
            words = say("one-pass variance, E[x^2] - E[x]^2, and NaN where that is negative")
        return Difference("one-pass-variance", words)
    return None


def narrower(spec: NormSpec, rungs: Sequence[Rung]) -> Difference | None:
    """A type narrower than the input's, if that makes errors of this size."""
    for dtype, given in (("float32", "float64"), ("float16", "float32")):
        some = [rung for rung in rungs if rung.call.dtype == given and rung.height <= 100]
        if some and _alike(spec, some, dtype):
            words = say("computes {given} in {found}", given=given, found=dtype)
            return Difference("narrower-type", words)
    return None


def accumulated(spec: NormSpec, call: Call, answer: Answer) -> Difference | None:
    """Sums in the input's own half type, if they overflow as the answer does."""
    if call.dtype != "float16":
        return None
    narrow = replace(spec, accumulation=Accumulation.INPUT)
    if _same_places(_emulated(narrow, call, call.dtype), answer.y):
        words = say("sums in the input's type, {dtype}", dtype=call.dtype)
        return Difference("half-accumulation", words)
    return None


def overflowed(spec: NormSpec, call: Call, answer: Answer) -> Difference | None:
    """Squares beyond the range of float32, if a computation in float32 fails as well."""
    emulated, right = _emulated(spec, call, "float32"), truth(spec, call)["forward"]
    with np.errstate(all="ignore"):
        fails = ~(np.abs(emulated - right.value) <= right.bound)
        wrong = ~(np.abs(answer.y - right.value) <= right.bound)
    if not fails.any() or not wrong.any():
        return None
    got = answer.y[np.unravel_index(int(np.argmax(wrong)), wrong.shape)]
    words = say(
        "squares overflow float32 from {size} on: the output is {got}",
        size=number(float(np.sqrt(np.finfo(np.float32).max))),
        got=number(float(got)),
    )
    return Difference("overflow", words)


def underflowed(spec: NormSpec, call: Call) -> Difference | None:
    """Squares below the range of float32, if a computation in float32 fails as well."""
    emulated, right = _emulated(spec, call, "float32"), truth(spec, call)["forward"]
    with np.errstate(all="ignore"):
        if np.all(np.abs(emulated - right.value) <= right.bound):
            return None
    return Difference(
        "underflow", say("squares of the smallest numbers are 0, and nothing else divides")
    )


def flushed(answer: Answer) -> Difference | None:
    """Numbers below the least normal one taken for 0."""
    if np.any(answer.y):
        return None
    return Difference("subnormal", say("subnormal numbers count as 0"))


def sliding(spec: NormSpec, call: Call, answer: Answer) -> Difference | None:
    """A window's sum that is moved along, if the errors are those of the largest sum behind it."""
    if spec.window is None:
        return None
    axis = spec.reduced.of(call.x.ndim)[0]
    largest = np.maximum.accumulate(call.x**2, axis=axis)
    right = truth(spec, call)["forward"]
    weight = 1 + spec.window.alpha * largest * (np.abs(right.value / call.x)) ** (
        1 / spec.window.beta
    )
    with np.errstate(all="ignore"):
        close = np.abs(answer.y - right.value) <= right.bound * weight
    if not close.all():
        return None
    words = say("the window's sum slides: squares are added and subtracted, and cancel")
    return Difference("sliding-sum", words)


def _alike(spec: NormSpec, rungs: Sequence[Rung], dtype: str | None = None) -> bool:
    """Whether an emulation errs as the answers do, where either errs more than rounding does."""
    compared = 0
    for rung in rungs:
        right = truth(spec, rung.call)["forward"]
        twin = _emulated(spec, rung.call, dtype or rung.call.dtype)
        ours, theirs = _error(twin, right.value), _error(rung.answer.y, right.value)
        bound = float(np.max(right.bound))
        if max(ours, theirs) <= bound:
            continue
        if not np.isfinite(ours) or not np.isfinite(theirs):
            # Whether a variance comes out negative is chance at the start of its range.
            compared += 1
            continue
        if not 1 / _APART < max(ours, bound / SLACK) / max(theirs, bound / SLACK) < _APART:
            return False
        compared += 1
    return compared > 0


def _error(got: Numbers, right: Numbers) -> float:
    finite = np.isfinite(got)
    if not finite.all():
        return np.inf
    return float(np.max(np.abs(got - right)))


def _same_places(twin: Numbers, got: Numbers) -> bool:
    """Whether two arrays are 0, finite and not finite at the same places."""
    return bool(
        np.array_equal(np.isfinite(twin), np.isfinite(got)) and np.array_equal(twin == 0, got == 0)
    )


def _emulated(spec: NormSpec, call: Call, dtype: str) -> Numbers:
    array: Any = call.x.astype(dtype)
    with np.errstate(all="ignore"):
        return numbers(emulate(resolved(spec, dtype), array))
