"""How a layer fares on hard numbers: large means, constants, half types, huge, tiny, NaN."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.conformance import cases, numerics
from traindx.norm.conformance.naming import Difference
from traindx.norm.conformance.numerics import Rung
from traindx.norm.conformance.precision import Numbers
from traindx.norm.conformance.study import Study, Verdict, defined, verdict
from traindx.norm.conformance.target import Answer, Call
from traindx.norm.conformance.truth import SLACK, Deviation, deviation, deviations, truth
from traindx.norm.moments import layout

_PLAIN = 0.05
"""An error that nobody takes for rounding: an example is taken from there on."""

_LINED_UP = 2 * SLACK
"""Roundings of equal numbers do not cancel: n of them make n / 2 eps (Higham 2002, section 4.2)."""


@dataclass(frozen=True, slots=True)
class Climbed:
    """A rung of the ladder with how far each array was off."""

    rung: Rung
    off: dict[str, Deviation]


def study_ladder(study: Study) -> None:
    """Means of growing size, in both wide types: the output, the gradients, the variance kept."""
    for dtype in ("float32",) if study.target.slow else ("float32", "float64"):
        if dtype in study.lacks:
            continue
        climbed: list[Climbed] = []
        for height, call in cases.ladder(study.kind, study.layer, dtype):
            if not defined(study.expected(dtype), call) or (
                study.target.slow and height not in (1, 1e4)
            ):
                continue
            answer = study.ask(f"{dtype} ladder", call)
            if answer is not None and answer.given:
                rung = Rung(height, study.computed(call), answer)
                climbed.append(Climbed(rung, study.compare(call, answer)))
        _judged(study, climbed)


def study_constants(study: Study) -> None:
    """The same number everywhere: 0 is right, or the bias."""
    for call in cases.constants(study.kind, study.layer):
        answer = study.ask("constants", call)
        if answer is None or not answer.given or study.spec.window is not None:
            continue
        expected = study.spec
        if "eps" in call.options:
            expected = replace(expected, eps=call.options["eps"])
        if not defined(expected, call):
            # A layer without eps has no answer here; the family's own has.
            expected = study.kind.spec
        if not expected.centered:
            continue
        if not np.all(np.isfinite(answer.y)):
            words = say("a constant input gives {got}", got=_shown(answer.y))
            _find(
                study, "edge", "constant", words, Severity.ERROR, Verdict.NON_FINITE, call, expected
            )
            study.count(Verdict.NON_FINITE)
            continue
        if not defined(expected, call):
            continue
        off = study.compare(call, answer, expected)["forward"]
        if off.ratio > max(1.0, layout(expected, call.x.shape).count / _LINED_UP):
            words = say("a constant input gives {got}, not 0", got=_shown(answer.y))
            _find(study, "edge", "constant", words, Severity.ERROR, verdict(off), call, expected)
        elif off.error > 1e-4:
            words = say(
                "a constant input does not give 0: the rounding of the mean is divided by the "
                "root of eps"
            )
            _find(
                study,
                "edge",
                "constant-rounding",
                words,
                Severity.INFO,
                Verdict.ROUNDING,
                call,
                expected,
            )


def study_memory(study: Study) -> None:
    """The same numbers otherwise in memory."""
    for call in cases.memories(study.kind, study.layer):
        answer = study.ask("memory", call)
        if answer is None:
            continue
        if answer.raised:
            words = say(
                "raises on {memory} input: {error}", memory=call.memory, error=answer.raised
            )
            _find(study, "edge", "memory-raises", words, Severity.ERROR, Verdict.RAISES, call)
            continue
        usual = study.ask("memory", call.where(memory="contiguous"))
        wrong = _wrong(study, call, usual) if usual is not None and usual.given else set[str]()
        for aspect, off in study.compare(call, answer).items():
            if off.ratio > 1 and aspect not in wrong:
                words = say("{memory} input gives something else", memory=call.memory)
                _find(
                    study,
                    "edge",
                    "memory",
                    words,
                    Severity.ERROR,
                    verdict(off),
                    call,
                    aspect=aspect,
                )


def study_halves(study: Study) -> None:
    """Half types: what comes out, how precise it is, and what overflows on the way."""
    for call in cases.halves(study.kind, study.layer):
        answer = study.ask(call.dtype, call)
        if answer is None:
            continue
        if answer.raised:
            words = say(
                "the layer takes no {dtype}: {error}", dtype=call.dtype, error=answer.raised
            )
            _find(study, "type", f"no-{call.dtype}", words, Severity.INFO, Verdict.RAISES, call)
            study.lacks.setdefault(call.dtype, answer.raised)
            continue
        if answer.dtype and answer.dtype != call.dtype:
            words = say("{given} input gives {got} output", given=call.dtype, got=answer.dtype)
            _find(study, "type", "output-type", words, Severity.INFO, Verdict.SEMANTIC, call)
        for aspect, off in study.compare(call, answer).items():
            if off.ratio > 1:
                words = say(
                    "{aspect} in {dtype} is off by {times} of what its last rounding allows",
                    aspect=aspect,
                    dtype=call.dtype,
                    times=f"{off.ratio:.2g} times" if np.isfinite(off.ratio) else "more",
                )
                _find(
                    study,
                    "type",
                    f"half-rounding-{aspect}",
                    words,
                    Severity.WARNING,
                    verdict(off),
                    call,
                    aspect=aspect,
                )


def study_range(study: Study) -> None:
    """Numbers whose squares are beyond the type, and numbers below the least normal one."""
    for call in cases.overflowing(study.kind, study.layer):
        if call.dtype not in study.lacks:
            _overflow(study, call)
    call = cases.subnormal(study.kind, study.layer)
    answer = study.ask("subnormal", call)
    if answer is not None and answer.given and defined(study.spec, call):
        off = study.compare(call, answer)["forward"]
        if off.ratio > 1:
            words = numerics.flushed(answer) or numerics.underflowed(study.spec, call)
            if words is not None:
                study.find("type", words, Severity.INFO, Verdict.SEMANTIC, call)
            else:
                text = say(
                    "subnormal input gives {got} where {right} is right",
                    got=f"{off.got:.3g}",
                    right=f"{off.right:.3g}",
                )
                _find(study, "type", "subnormal", text, Severity.WARNING, verdict(off), call)


def study_spoiled(study: Study) -> None:
    """One NaN or infinity: it spoils the elements that share its statistic, and no others."""
    for value, clean in cases.spoiled(study.kind, study.layer):
        call = clean.where(x=_with_first(clean.x, value))
        answer = study.ask("not finite", call)
        if answer is None or not answer.given:
            continue
        touched = _touched(study, clean)
        right = truth(study.spec, clean)["forward"]
        off = deviation("forward", right, _mixed(touched, right.value, answer.y))
        study.count(verdict(off))
        if off.ratio > 1:
            words = say(
                "{value} in one element reaches others that share no statistic with it", value=value
            )
            _find(study, "edge", "spreads", words, Severity.ERROR, verdict(off), call)
        if np.all(np.isfinite(answer.y[touched])):
            words = say("{value} in one element leaves the output finite", value=value)
            _find(study, "edge", "swallowed", words, Severity.WARNING, Verdict.SEMANTIC, call)
        if answer.running is not None and not np.all(np.isfinite(answer.running[1])):
            words = say(
                "{value} in one element makes running statistics {got} for good",
                value=value,
                got=_shown(answer.running[1]),
            )
            _find(
                study,
                "edge",
                "poisons",
                words,
                Severity.INFO,
                Verdict.NON_FINITE,
                call,
                aspect="running_var",
            )


def _wrong(study: Study, call: Call, answer: Answer) -> set[str]:
    """The arrays of an answer that are wrong anyway."""
    found = deviations(study.expected(call.dtype), call, answer)
    return {aspect for aspect, off in found.items() if off.ratio > 1}


# -- the ladder -----------------------------------------------------------------------------------


def _judged(study: Study, climbed: list[Climbed]) -> None:
    name = _forward(study, climbed)
    for aspect, part in (("running_var", "running"), ("grad_x", "backward")):
        wrong = [one for one in climbed if aspect in one.off and one.off[aspect].ratio > 1]
        known = any(one.part == "backward" and one.seen for one in study.findings)
        if not wrong or (name is None and known and aspect == "grad_x"):
            continue  # or it was found wrong at any mean
        example = _example(wrong, aspect)
        if name is None:
            words = Difference(
                "unexplained", say("wrong at a large mean, and nothing that was tried explains it")
            )
        elif aspect == "grad_x":
            words = Difference(name.name, say("the gradient of a {fault}", fault=name.text))
        else:
            words = Difference(name.name, say("running variance of a {fault}", fault=name.text))
        study.find(
            _in(part, example),
            words,
            Severity.ERROR,
            verdict(example.off[aspect]),
            example.rung.call,
            aspect=aspect,
        )
    for one in climbed:
        if one.rung.answer.running is not None and np.any(one.rung.answer.running[1] < 0):
            words = say(
                "the running variance becomes negative, {least}",
                least=f"{np.min(one.rung.answer.running[1]):.3g}",
            )
            difference = Difference("negative-variance", words)
            study.find(
                "running",
                difference,
                Severity.ERROR,
                Verdict.SEMANTIC,
                one.rung.call,
                aspect="running_var",
            )
            break


def _forward(study: Study, climbed: list[Climbed]) -> Difference | None:
    wrong = [one for one in climbed if one.off["forward"].ratio > 1]
    if not wrong:
        return None
    rungs = [one.rung for one in climbed]
    spec = study.expected(rungs[0].call.dtype)
    found = numerics.one_pass(spec, rungs) or numerics.narrower(spec, rungs)
    if found is None:
        found = Difference(
            "unexplained", say("wrong at a large mean, and nothing that was tried explains it")
        )
    example = _example(wrong, "forward")
    worst = verdict(max(wrong, key=lambda one: one.off["forward"].lost).off["forward"])
    study.find(_in("forward", example), found, Severity.ERROR, worst, example.rung.call)
    return None if found.name == "unexplained" else found


def _in(part: str, climbed: Climbed) -> str:
    """The part, with the type where that is not the usual one."""
    dtype = climbed.rung.call.dtype
    return part if dtype == "float32" else f"{part} {dtype}"


def _example(wrong: list[Climbed], aspect: str) -> Climbed:
    """The lowest rung on which the error is plain."""
    for one in wrong:
        scale = max(float(abs(one.off[aspect].right)), 1e-30)
        if one.off[aspect].lost or one.off[aspect].error > _PLAIN * scale:
            return one
    return wrong[0]


# -- single questions -----------------------------------------------------------------------------


def _overflow(study: Study, call: Call) -> None:
    answer = study.ask("range", call)
    if answer is None or not answer.given or not defined(study.spec, call):
        return
    for aspect, off in study.compare(call, answer).items():
        if off.ratio <= 1:
            continue
        found = numerics.accumulated(study.spec, call, answer) if aspect == "forward" else None
        severity = Severity.WARNING
        if found is None and aspect == "forward":
            found, severity = numerics.overflowed(study.spec, call, answer), Severity.INFO
        if found is None:
            words = say(
                "{aspect} is {got} for numbers of {size}, whose squares {dtype} does not hold",
                aspect=aspect,
                got=f"{off.got:.3g}",
                size=f"{np.max(np.abs(call.x)):.3g}",
                dtype=call.dtype,
            )
            found, severity = (
                Difference("overflow", words),
                Severity.WARNING if call.dtype == "float16" else Severity.INFO,
            )
        study.find("type", found, severity, verdict(off), call, aspect=aspect)


def _with_first(x: Numbers, value: float) -> Numbers:
    spoiled = x.copy()
    spoiled[(0,) * x.ndim] = value
    return spoiled


def _touched(study: Study, call: Call) -> Numbers:
    """The elements that share a statistic with the first."""
    mark = np.zeros(call.x.shape)
    mark[(0,) * call.x.ndim] = 1
    if study.spec.window is not None:
        axis = study.spec.reduced.of(call.x.ndim)[0]
        near = np.zeros(call.x.shape, bool)
        index: list[slice | int] = [0] * call.x.ndim
        index[axis] = slice(0, study.spec.window.before + study.spec.window.after + 1)
        near[tuple(index)] = True
        return near
    seen = layout(study.spec, call.x.shape)
    whole = np.max(seen.split(mark), axis=seen.reduced, keepdims=True) > 0
    return seen.join(np.array(np.broadcast_to(whole, seen.seen)))


def _mixed(where: Numbers, one: Numbers, other: Numbers) -> Numbers:
    """The first array where it holds, else the other."""
    mixed = other.copy()
    mixed[where] = one[where]
    return mixed


def _shown(values: Numbers) -> str:
    bad = values[~np.isfinite(values)]
    return f"{(bad if bad.size else values).flat[0]:.3g}"


def _find(
    study: Study,
    part: str,
    name: str,
    words: str,
    severity: Severity,
    verdict: Verdict,
    call: Call,
    expected: object = None,
    *,
    aspect: str = "forward",
) -> None:
    from traindx.norm.spec import NormSpec

    spec = expected if isinstance(expected, NormSpec) else None
    study.find(part, Difference(name, words), severity, verdict, call, aspect=aspect, expected=spec)
