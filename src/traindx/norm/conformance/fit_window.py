"""Finds what a local response normalization computes.

With t = (x / y)^(1 / beta), t = k + alpha * (sum of squares in the window): for the right beta and
window a straight line, whose coefficients are the layer's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from traindx.messages import say
from traindx.norm.conformance.fit import Fit, Seen, agrees
from traindx.norm.conformance.naming import Difference, number
from traindx.norm.conformance.precision import Numbers
from traindx.norm.conformance.target import Call
from traindx.norm.spec import Axes, NormSpec, Window

_BETAS = (0.75, 0.5, 1.0)


def fit_window(expected: NormSpec, seen: Seen) -> Fit | None:
    """The nearest window, power and coefficients that explain every output; None if none do."""
    if agrees(expected, seen):
        return Fit(expected)
    for axis, window in _candidates(expected, seen):
        spec = replace(expected, reduced=Axes((axis,)), window=window)
        if agrees(spec, seen):
            return Fit(spec, tuple(_words(expected, spec)))
    if _only_first(expected, seen):
        words = say("only as many channels are divided as there are samples: it loops over them")
        return Fit(expected, (Difference("loops-over-samples", words),))
    return None


def _candidates(expected: NormSpec, seen: Seen) -> Iterator[tuple[int, Window]]:
    window, own = expected.window, expected.reduced.named[0]
    assert window is not None, "asked of a layer with a window"
    size = window.before + window.after + 1
    befores = sorted(range(size), key=lambda before: abs(before - window.before))
    for axis, before in product((own, -1, 0), befores):
        for beta in sorted(_BETAS, key=lambda beta: beta != window.beta):
            solved = _line(seen, axis, before, size - 1 - before, beta)
            if solved is not None:
                k, alpha = solved
                # The coefficient of the window may be a short number over its size.
                alpha = min(
                    (_neat(alpha), _neat(alpha * size) / size), key=lambda a: len(repr(a * size))
                )
                yield axis, Window(before, size - 1 - before, alpha, beta, k)


def _line(
    seen: Seen, axis: int, before: int, after: int, beta: float
) -> tuple[float, float] | None:
    """K and alpha by least squares, each element weighed by one over its divisor."""
    columns: list[Numbers] = []
    for call, answer in seen:
        with np.errstate(all="ignore"):
            t = ((call.x / answer.y) ** (1 / beta)).ravel()
        sums = _sums(call.x, axis, before, after).ravel()
        known = np.isfinite(t) & (t > 0)
        columns.append(np.stack([1 / t[known], sums[known] / t[known]], axis=1))
    table = np.concatenate(columns)
    found = np.linalg.lstsq(table, np.ones(len(table)), rcond=None)[0] if len(table) else None
    return None if found is None else (_neat(float(found[0])), float(found[1]))


def _sums(x: Numbers, axis: int, before: int, after: int) -> Numbers:
    squares = np.moveaxis(x, axis, 0) ** 2
    total = np.zeros_like(squares)
    for i in range(len(squares)):
        total[i] = squares[max(i - before, 0) : i + after + 1].sum(axis=0)
    return np.moveaxis(total, 0, axis)


def _neat(value: float) -> float:
    for digits in (1, 2, 3, 4, 5):
        short = float(f"{value:.{digits}g}")
        if abs(short - value) <= 2e-6 * abs(value):
            return short
    return value


def _words(expected: NormSpec, found: NormSpec) -> Iterator[Difference]:
    before, after = expected.window, found.window
    assert before is not None, "asked of a layer with a window"
    assert after is not None, "and so is what was found"
    if found.reduced != expected.reduced:
        words = say(
            "axis {found} instead of {expected}",
            found=found.reduced.named[0],
            expected=expected.reduced.named[0],
        )
        yield Difference("axis", words)
    if after.before != before.before:
        words = say(
            "the window holds {found} before and {after} after, not {expected} and {rest}",
            found=after.before,
            after=after.after,
            expected=before.before,
            rest=before.after,
        )
        yield Difference("window", words)
    size = before.before + before.after + 1
    if np.isclose(after.alpha, before.alpha * size, rtol=1e-4) and size > 1:
        yield Difference("alpha-divided", say("alpha is not divided by the size"))
    elif not np.isclose(after.alpha, before.alpha, rtol=1e-4):
        words = say(
            "alpha is {found}, and not {expected}",
            found=number(after.alpha * size),
            expected=number(before.alpha * size),
        )
        yield Difference("alpha", words)
    if after.beta != before.beta:
        words = say(
            "beta is {found}, and not {expected}",
            found=number(after.beta),
            expected=number(before.beta),
        )
        yield Difference("beta", words)
    if not np.isclose(after.k, before.k, rtol=1e-4):
        words = say(
            "k is {found}, and not {expected}", found=number(after.k), expected=number(before.k)
        )
        yield Difference("k", words)


def _only_first(spec: NormSpec, seen: Seen) -> bool:
    """Whether the channels after the N-th of N samples are divided by k alone."""

    def cut(call: Call) -> Numbers:
        window = spec.window
        assert window is not None, "asked of a layer with a window"
        sums = np.moveaxis(_sums(call.x, 1, window.before, window.after), 1, 0)
        sums[len(call.x) :] = 0
        return call.x / (window.k + window.alpha * np.moveaxis(sums, 0, 1)) ** window.beta

    return all(np.allclose(answer.y, cut(call), rtol=1e-5, atol=0) for call, answer in seen)
