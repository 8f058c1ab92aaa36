"""Makes a question that shows a difference as small and as plain as it can be.

Greedy: whatever can be left out, cut, or replaced by simpler numbers is, as long as the answer
still differs in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from traindx.errors import ArgumentError
from traindx.findings import Severity
from traindx.norm.conformance.precision import Numbers, rounded
from traindx.norm.conformance.study import Finding, Verdict
from traindx.norm.conformance.target import Call, Target, ask
from traindx.norm.conformance.truth import answered, deviation, truth
from traindx.norm.spec import NormSpec

_QUESTIONS = {Severity.ERROR: 120, Severity.WARNING: 60, Severity.INFO: 30}
"""How many questions a difference is worth."""
_FEW = 6
"""The same, where a question costs seconds."""
_PLAIN = 0.02
"""An error, over the largest number there should be, that a reader sees at once."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A question and the specification that its answer is held against."""

    call: Call
    spec: NormSpec

    @property
    def key(self) -> str:
        """The same for the same question."""
        parts = (self.call.x, self.call.dy, self.call.weight, self.call.bias, self.call.mask)
        arrays = [None if part is None else (part.shape, part.tobytes()) for part in parts]
        return f"{arrays} {self.call.running is None} {self.call.options} {self.call.memory}"


def shrunk(target: Target, finding: Finding) -> Finding:
    """The finding with the smallest question found that shows it."""
    best = Shown(finding.call, finding.expected)
    shows = _shows(target, finding)
    if shows is None or not best.call.x.size or not np.all(np.isfinite(best.call.x)):
        return finding
    left = _FEW if target.slow else _QUESTIONS[finding.severity]
    tried = {best.key}
    for reduce in (_without_state, _one_group, _cut, _plainer, _cut, _plainer):
        going = True
        while going:
            going = False
            for smaller in reduce(best, finding):
                if smaller.key in tried:
                    continue
                if not left:
                    return replace(finding, call=best.call, expected=best.spec)
                tried.add(smaller.key)
                left -= 1
                if shows(smaller):
                    best, going = smaller, True
                    break
    return replace(finding, call=best.call, expected=best.spec)


# -- whether it still shows -----------------------------------------------------------------------


def error_of(target: Target, finding: Finding, shown: Shown) -> tuple[float, float, int]:
    """Ratio to the bound, error over the largest number there should be, numbers lost."""
    answer = ask(target, shown.call)
    if not answer.given:
        return 0.0, 0.0, 0
    try:
        right = truth(shown.spec, shown.call)
    except ArgumentError:
        return 0.0, 0.0, 0
    got = answered(shown.call, answer)
    if finding.aspect not in right or finding.aspect not in got:
        return 0.0, 0.0, 0
    off = deviation(finding.aspect, right[finding.aspect], got[finding.aspect])
    size = float(np.max(np.abs(right[finding.aspect].value), initial=0.0))
    return off.ratio, off.error / max(size, 1e-300), off.lost


def _shows(target: Target, finding: Finding) -> Callable[[Shown], bool] | None:
    """Whether a question still shows the difference; None if that cannot be told."""
    if finding.verdict is Verdict.RAISES:
        kind = ask(target, finding.call).raised.partition(":")[0]
        return lambda shown: bool(kind) and ask(target, shown.call).raised.startswith(kind)
    first = error_of(target, finding, Shown(finding.call, finding.expected))
    if first[2]:
        return lambda shown: bool(error_of(target, finding, shown)[2])
    if first[0] > 1:
        least = min(_PLAIN, first[1] / 4)

        def differs(shown: Shown) -> bool:
            ratio, error, lost = error_of(target, finding, shown)
            return ratio > 1 and error >= least and not lost

        return differs
    if finding.verdict is Verdict.ROUNDING:

        def rounds(shown: Shown) -> bool:
            _, error, lost = error_of(target, finding, shown)
            return error > 0 and not lost and _stays(finding, shown)

        return rounds
    return None


def _stays(finding: Finding, shown: Shown) -> bool:
    """Whether a constant input is still the constant that it was."""
    return bool(np.all(shown.call.x == finding.call.x.flat[0]))


# -- smaller questions ----------------------------------------------------------------------------


def _without_state(shown: Shown, finding: Finding) -> Iterator[Shown]:
    call = shown.call
    gradient = finding.aspect.startswith("grad")
    bare: dict[str, Any] = {"weight": None, "bias": None, "memory": "contiguous"}
    if call.training:
        bare["running"] = None
    if not gradient:
        bare["dy"] = None
    yield replace(shown, call=call.where(**bare))
    for name, value in bare.items():
        yield replace(shown, call=call.where(**{name: value}))


def _one_group(shown: Shown, finding: Finding) -> Iterator[Shown]:
    groups = shown.spec.groups
    if groups is None or groups.affine or shown.call.options.get("num_groups", 1) == 1:
        return
    call = shown.call.where(options={**shown.call.options, "num_groups": 1})
    yield Shown(call, replace(shown.spec, groups=replace(groups, count=1)))


def _cut(shown: Shown, finding: Finding) -> Iterator[Shown]:
    """Fewer elements along an axis."""
    for axis, extent in enumerate(shown.call.x.shape):
        for fewer in sorted({1, 2, 3, 4, extent // 2} - {0}):
            if fewer < extent:
                smaller = _first(shown, axis, fewer)
                if smaller is not None:
                    yield smaller


def _first(shown: Shown, axis: int, count: int) -> Shown | None:
    """The question with the first elements along an axis; None if its state has no such cut."""
    call, spec = shown.call, shown.spec
    index = (slice(None),) * axis + (slice(count),)

    def whole(values: Numbers | None) -> Numbers | None:
        if values is None or values.shape[axis] == 1:
            return values
        return values[index]

    along = () if spec.affine is None else spec.affine.of(call.x.ndim)
    kept = () if spec.running is None else spec.running.axes.of(call.x.ndim)
    if axis in along and along != (axis,) and call.weight is not None:
        return None
    state: dict[str, Any] = {}
    if axis in along:
        state = {
            name: None if values is None else values[:count]
            for name, values in (("weight", call.weight), ("bias", call.bias))
        }
    if axis in kept and call.running is not None:
        state["running"] = tuple(values[:count] for values in call.running)
    cut = call.where(x=call.x[index], dy=whole(call.dy), mask=whole(call.mask), **state)
    return replace(shown, call=cut)


def _plainer(shown: Shown, finding: Finding) -> Iterator[Shown]:
    """Numbers that can be read: a base and small steps, or fewer digits."""
    call = shown.call
    steps = np.reshape(np.arange(float(call.x.size)) % 4, call.x.shape)
    mean, std = float(call.x.mean()), float(call.x.std())
    candidates: list[Numbers] = []
    if std and abs(mean) > 5 * std:
        high = float(np.floor(np.log10(abs(mean))))
        candidates += [10.0**power + steps for power in np.arange(2, high + 2)]
    elif std:
        unit = 10.0 ** np.floor(np.log10(std))
        candidates += [unit * (1 + steps), unit * (steps - 1.5)]
        candidates.append(np.round(call.x / unit) * unit)
    plain_dy: Numbers | None = None if call.dy is None else (steps == 0).astype(float)
    for plain in candidates:
        for dy in (plain_dy, call.dy) if call.dy is not None else (None,):
            yield replace(shown, call=call.where(x=rounded(plain, call.dtype), dy=dy))
    if call.running is not None and not call.training:
        ones = tuple(np.ones_like(values) for values in call.running)
        yield replace(shown, call=call.where(running=ones))
