"""Whether a layer does what it is asked to: options, state, axes, types, gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.affine import weighted
from traindx.norm.conformance import cases
from traindx.norm.conformance.defaults import running_shape
from traindx.norm.conformance.fit import agrees, fit_forward
from traindx.norm.conformance.fit_running import fit_running
from traindx.norm.conformance.fit_window import fit_window
from traindx.norm.conformance.kinds import asked_of, resolved, shortened
from traindx.norm.conformance.naming import Difference
from traindx.norm.conformance.numerics import sliding
from traindx.norm.conformance.precision import Numbers
from traindx.norm.conformance.study import Study, Verdict, defined, verdict
from traindx.norm.conformance.target import Answer, Call
from traindx.norm.conformance.truth import Deviation, deviations
from traindx.norm.moments import layout, scale_of, statistics
from traindx.norm.scaling import rates
from traindx.norm.spec import NormSpec

_FAR = 1e5
"""An error, over the bound of float64, that only a narrower type makes: float32 is 5e8 coarser."""


def study_requests(study: Study) -> None:
    """Every option chosen, on several shapes and in both wide types, with state and gradients."""
    shapes = study.kind.shapes[: 1 if study.target.slow else None]
    types = ("float32",) if study.target.slow else ("float32", "float64")
    for shape in shapes:
        for dtype in types:
            calls = cases.asked(study.kind, study.layer, shape, dtype)
            spec = asked_of(study.kind, study.spec, {**study.kind.needed, **study.kind.asked})
            if not _asked(study, f"{dtype} {len(shape)}-D", calls, spec):
                break


def study_axis(study: Study) -> None:
    """Another axis than the default, on a shape that shows a wrong one and on one that hides it."""
    if study.kind.name not in (
        "layer_norm",
        "rms_norm",
        "batch_norm",
        "unit_norm",
        "instance_norm",
    ):
        return
    own = (study.spec.reduced.named[-1],)
    for shape in ((2, 3, 4), (4, 4, 4), (2, 3, 4, 5)):
        for axis in (1, -1):
            if axis % len(shape) in {one % len(shape) for one in own}:
                continue
            needed = {**study.kind.needed, "axis": axis}
            x = cases.random(21, shape) * 3 + 1
            calls = [Call(study.layer, x.astype(np.float32).astype(float), options=needed)]
            _asked(study, "axis", calls, asked_of(study.kind, study.spec, needed), state=False)


def study_windows(study: Study) -> None:
    """Windows of even size, which have no middle."""
    if study.spec.window is None:
        return
    for size in (2, 4):
        calls = [
            call.where(options={**call.options, "size": size, "alpha": 0.5})
            for call in cases.squares(study.kind, study.layer)
        ]
        expected = asked_of(study.kind, study.spec, {"size": size, "alpha": 0.5})
        seen = [(call, answer) for call in calls if (answer := study.ask("even window", call))]
        for call, answer in seen:
            if answer.raised:
                words = say("refuses windows of even size: {error}", error=answer.raised)
                study.find(
                    "asked", Difference("even-window", words), Severity.INFO, Verdict.RAISES, call
                )
        answered = [(call, answer) for call, answer in seen if answer.given]
        fit = fit_window(expected, answered) if answered else None
        if answered and fit is None:
            _unexplained(study, answered[0][0], expected, "forward")
        for difference in fit.differences if fit else ():
            study.find(
                "asked",
                difference,
                Severity.WARNING if difference.name == "window" else Severity.ERROR,
                Verdict.SEMANTIC,
                answered[0][0],
                expected=expected,
            )


def _asked(
    study: Study, what: str, calls: list[Call], spec: NormSpec, *, state: bool = True
) -> bool:
    """Whether the target answered; what it answered is compared and explained."""
    calls = [_stateful(study, spec, call) if state else call for call in calls]
    seen: list[tuple[Call, Answer]] = []
    for call in calls:
        if not defined(spec, call):
            continue
        answer = study.ask(what, call)
        if answer is None:
            return False
        if answer.raised:
            if not _by_group(study, what, calls, spec):
                _raised(study, what, call, answer, spec)
            return False
        seen.append((call, answer))
    spec = _in_float64(study, spec, seen)
    found = [(call, study.compare(call, answer, spec)) for call, answer in seen]
    for aspect in ("forward", "running_mean", "running_var", "grad_x", "grad_weight", "grad_bias"):
        wrong = [
            (call, off[aspect]) for call, off in found if aspect in off and off[aspect].ratio > 1
        ]
        if wrong:
            _explained(study, spec, seen, aspect, wrong[0])
            break
    return True


def _by_group(study: Study, what: str, calls: list[Call], spec: NormSpec) -> bool:
    """Whether a layer that refuses a weight for each channel takes one for each group."""
    if spec.groups is None or spec.groups.affine:
        return False
    grouped = replace(spec, groups=replace(spec.groups, affine=True))
    bare = [call.where(weight=None, bias=None) for call in calls]
    calls = [_stateful(study, grouped, call) for call in bare]
    seen = [(call, answer) for call in calls if (answer := study.ask(what, call))]
    if not seen or not all(answer.given for _, answer in seen):
        return False
    groups = study.spec.groups
    assert groups is not None, "it was asked for groups"
    study.spec = replace(study.spec, groups=replace(groups, affine=True))
    words = say("weight and bias per group, not per channel")
    difference = Difference("affine-groups", words)
    study.find("asked", difference, Severity.INFO, Verdict.SEMANTIC, seen[0][0], expected=grouped)
    for call, answer in seen:
        study.compare(call, answer, grouped)
    return True


def _in_float64(study: Study, spec: NormSpec, seen: list[tuple[Call, Answer]]) -> NormSpec:
    """The specification, with options in float32 where that is what explains float64.

    If instead all of it is computed in float32, that is noted, and the bounds are those from here.
    """
    double = [pair for pair in seen if pair[0].dtype == "float64"]
    if not double or agrees(spec, double):
        return spec
    ratios = [deviations(spec, *pair)["forward"].ratio for pair in double]
    worst = double[int(np.argmax(ratios))][0]
    if agrees(shortened(spec), double):
        study.short = True
        words = say("keeps eps and other options in float32, for float64 input too")
        difference, severity = Difference("short-options", words), Severity.INFO
    elif max(ratios) > _FAR and agrees(
        spec, [(call.where(dtype="float32"), answer) for call, answer in double]
    ):
        study.narrow = True
        difference = Difference("narrower-type", say("computes float64 in float32"))
        severity = Severity.WARNING
    else:
        return spec
    study.find("type", difference, severity, Verdict.SEMANTIC, worst, expected=spec)
    return shortened(spec) if study.short else spec


def _stateful(study: Study, spec: NormSpec, call: Call) -> Call:
    """The call with all the state that its layer has."""
    shapes: dict[str, tuple[int, ...]] = {}
    if spec.affine is not None and spec.window is None:
        extents = tuple(call.x.shape[axis] for axis in spec.affine.of(call.x.ndim))
        if spec.groups is not None and spec.groups.affine:
            extents = (spec.groups.cut(extents[0])[0],)
        shapes["weight"] = extents
        if study.kind.name != "rms_norm":
            shapes["bias"] = extents
    if spec.running is not None:
        shapes["running"] = running_shape(study, call)
    return cases.with_state(call, shapes)


def _raised(study: Study, what: str, call: Call, answer: Answer, spec: NormSpec) -> None:
    words = say("the layer raises {error}", error=answer.raised)
    narrow = call.dtype != "float32"
    study.count(Verdict.RAISES)
    if narrow:
        words = say("the layer takes no {dtype}: {error}", dtype=call.dtype, error=answer.raised)
        study.lacks.setdefault(call.dtype, answer.raised)
    name = "no-" + call.dtype if narrow else "raises"
    usual = what == "axis" or call.x.ndim == len(study.kind.shapes[0])
    severity = Severity.INFO if narrow else Severity.ERROR if usual else Severity.WARNING
    study.find("asked", Difference(name, words), severity, Verdict.RAISES, call, expected=spec)


def _explained(
    study: Study,
    spec: NormSpec,
    seen: list[tuple[Call, Answer]],
    aspect: str,
    wrong: tuple[Call, Deviation],
) -> None:
    """Name what makes one array wrong; what was asked and not given is an error."""
    fit = None
    if aspect == "forward":
        fit = fit_window(spec, seen) if spec.window is not None else fit_forward(spec, seen)
    elif aspect.startswith("running"):
        fit = fit_running(spec, seen)
        short = [(call.where(dtype="float32"), answer) for call, answer in seen]
        if fit is None and agrees(spec, short, ("running_mean", "running_var")):
            words = say(
                "running statistics stay in float32 for {dtype} input", dtype=wrong[0].dtype
            )
            study.find(
                "type",
                Difference("running-type", words),
                Severity.INFO,
                Verdict.SEMANTIC,
                wrong[0],
                aspect=aspect,
                expected=spec,
            )
            return
    elif aspect == "grad_x":
        name = gradient_fault(spec, seen)
        if name is not None:
            study.find(
                "backward",
                name,
                Severity.ERROR,
                Verdict.SEMANTIC,
                wrong[0],
                aspect=aspect,
                expected=spec,
            )
            return
    if fit is None:
        slides = aspect == "forward" and _slides(spec, seen)
        if slides:
            study.find(
                "asked", slides, Severity.WARNING, verdict(wrong[1]), wrong[0], expected=spec
            )
        else:
            _unexplained(study, wrong[0], spec, aspect)
        return
    for difference in fit.differences:
        asked = Difference(difference.name, difference.text)
        study.find(
            "asked",
            asked,
            Severity.ERROR,
            verdict(wrong[1]),
            wrong[0],
            aspect=aspect,
            expected=spec,
        )


def _slides(spec: NormSpec, seen: list[tuple[Call, Answer]]) -> Difference | None:
    found = [sliding(spec, call, answer) for call, answer in seen]
    return found[0] if all(found) else None


def _unexplained(study: Study, call: Call, spec: NormSpec, aspect: str) -> None:
    words = say("differs, and no specification that was tried explains it")
    difference = Difference("unexplained", words)
    part = "backward" if aspect.startswith("grad") else "asked"
    study.find(
        part, difference, Severity.ERROR, Verdict.SEMANTIC, call, aspect=aspect, expected=spec
    )


# -- gradients ------------------------------------------------------------------------------------


def gradient_fault(spec: NormSpec, seen: list[tuple[Call, Answer]]) -> Difference | None:
    """What is missing from a gradient by the input, of the terms that it has."""
    if spec.window is not None:
        return None
    ways: Mapping[str, Any] = {
        "gradient-of-constants": (say("the gradient takes mean and variance for constants"), 0, 0),
        "gradient-without-mean": (say("the gradient leaves out the part through the mean"), 0, 1),
        "gradient-without-variance": (
            say("the gradient leaves out the part through the variance"),
            1,
            0,
        ),
    }
    for name, (words, mean, variance) in ways.items():
        if all(_matches(spec, call, answer, mean, variance) for call, answer in seen):
            return Difference(name, words)
    return None


def _matches(spec: NormSpec, call: Call, answer: Answer, mean: int, variance: int) -> bool:
    if call.dy is None or answer.dx is None:
        return False
    spec = resolved(spec, call.dtype)
    seen, batch = layout(spec, call.x.shape), statistics(spec, call.x)
    root = rates(spec, scale_of(spec, batch))[0]
    g = seen.split(np.asarray(weighted(spec, call.dy, call.weight)))
    xh = (seen.split(call.x) - (batch.mean if spec.centered else 0.0)) * root

    def average(values: Numbers) -> Numbers:
        return np.mean(values, axis=seen.reduced, keepdims=True)

    dx = seen.join(root * (g - mean * average(g) - variance * xh * average(g * xh)))
    bound = deviations(spec, call, replace(answer, dx=np.asarray(dx)))["grad_x"]
    allowed = 1e-4 * np.max(np.abs(dx)) if bound.ratio else 0.0
    return bool(np.max(np.abs(answer.dx - dx)) <= allowed)
