"""What a layer does if nothing is asked of it: the conventions of its framework."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traindx.errors import ArgumentError
from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.conformance import cases
from traindx.norm.conformance.fit import Fit, Seen, fit_forward
from traindx.norm.conformance.fit_running import fit_evaluation, fit_running
from traindx.norm.conformance.fit_window import fit_window
from traindx.norm.conformance.naming import Difference
from traindx.norm.conformance.study import Study, Verdict
from traindx.norm.conformance.target import Answer, Call
from traindx.norm.conformance.truth import deviations
from traindx.norm.conformance.undo import undone
from traindx.norm.spec import NormSpec

_AFFINE = {
    "batch_norm": (True, True),
    "layer_norm": (True, True),
    "group_norm": (True, True),
    "instance_norm": (False, False),
    "rms_norm": (True, False),
}
"""Whether torch's layers have a weight and a bias if nothing is said."""


def study_defaults(study: Study) -> None:
    """Fit the layer with its defaults, and go on from what was found."""
    windowed = study.spec.window is not None
    questions = (cases.squares if windowed else cases.spread)(study.kind, study.layer)
    seen = list(_answers(study, questions))
    if not seen:
        # What cannot be trained can still be asked for its evaluation.
        study.unexplained = bool(study.findings)
        return
    fit = fit_window(study.spec, seen) if windowed else fit_forward(study.spec, seen)
    if fit is None:
        _unexplained(study, seen[1 if len(seen) > 1 else 0][0], "forward")
        study.unexplained = True
        return
    _accept(study, fit, seen, "forward")
    if study.found("loops-over-samples"):
        study.unexplained = True  # no specification says so: all that follows would show it again
        return
    for call, answer in seen:
        study.compare(call, answer)
    _running(study, seen)
    _affine(study, *seen[0])
    _groups(study)
    _counter(study, *seen[0])


def study_evaluation(study: Study) -> None:
    """Fit evaluation by given running statistics."""
    if study.spec.running is None:
        return
    calls = [
        cases.with_state(call, {"running": running_shape(study, call)}).where(training=False)
        for call in cases.spread(study.kind, study.layer)
    ]
    seen = list(_answers(study, iter(calls)))
    if not seen:
        return
    fit = fit_evaluation(study.spec, seen)
    if fit is None:
        _unexplained(study, seen[0][0], "evaluation")
        return
    for difference in fit.differences:
        study.find("evaluation", difference, Severity.ERROR, Verdict.SEMANTIC, seen[0][0])
    for call, answer in seen:
        study.compare(call, answer)


def running_shape(study: Study, call: Call) -> tuple[int, ...]:
    """The shape of the running statistics for such an input."""
    assert study.spec.running is not None, "asked of layers that keep running statistics"
    return tuple(call.x.shape[axis] for axis in study.spec.running.axes.of(call.x.ndim))


def _answers(study: Study, calls: Iterator[Call]) -> Iterator[tuple[Call, Answer]]:
    """The answers there are; an error among them is found."""
    for call in calls:
        answer = study.ask("defaults", call)
        if answer is not None and answer.raised:
            words = say("the layer raises {error}", error=answer.raised)
            difference = Difference("raises", words)
            study.find("default", difference, Severity.ERROR, Verdict.RAISES, call)
            study.count(Verdict.RAISES)
        elif answer is not None:
            yield call, answer


def _accept(study: Study, fit: Fit, seen: Seen, aspect: str) -> None:
    expected, study.spec = study.spec, fit.spec
    for difference in fit.differences:
        without = undone(fit.spec, expected, difference.name)
        odd = difference.name in _FAULTS
        study.find(
            "default",
            difference,
            Severity.ERROR if odd else Severity.INFO,
            Verdict.SEMANTIC,
            _plainest(without, seen, aspect),
            aspect=aspect,
            expected=without,
        )


def _plainest(spec: NormSpec, seen: Seen, aspect: str) -> Call:
    """The question whose answer is furthest from a specification."""

    def distance(pair: tuple[Call, Answer]) -> float:
        try:
            off = deviations(spec, *pair).get(aspect)
        except ArgumentError:
            return 0.0
        return off.ratio if off else 0.0

    return max(seen, key=distance)[0]


_FAULTS = {"loops-over-samples", "not-centered", "running-frozen", "scale", "centered", "rms"}
"""What is no framework's convention."""


def _running(study: Study, seen: Seen) -> None:
    if study.spec.running is None:
        return
    if all(answer.running is None for _, answer in seen):
        words = say("running statistics are not kept, or cannot be seen")
        study.find(
            "default", Difference("running", words), Severity.INFO, Verdict.SEMANTIC, seen[1][0]
        )
        study.spec = replace(study.spec, running=None)
        return
    fit = fit_running(study.spec, seen)
    if fit is None:
        _unexplained(study, seen[1][0], "running_var")
        return
    _accept(study, fit, seen, "running_var")


def _affine(study: Study, call: Call, answer: Answer) -> None:
    usual = _AFFINE.get(study.kind.name)
    if usual is None or answer.affine is None or answer.affine == usual:
        return
    words = {
        (True, True): say("a weight and a bias by default"),
        (True, False): say("a weight and no bias by default"),
        (False, False): say("no weight and no bias by default"),
    }.get(answer.affine, say("a bias and no weight by default"))
    study.find("default", Difference("affine", words), Severity.INFO, Verdict.SEMANTIC, call)


def _groups(study: Study) -> None:
    """The number of groups that a layer has if none is given."""
    if study.spec.groups is None:
        return
    call = Call(study.layer, cases.random(13, (2, 64, 3, 96)))
    answer = study.ask("default groups", call)
    if answer is None or not answer.given:
        return
    fit = fit_forward(study.spec, [(call, answer)])
    if fit is not None and fit.spec.groups is not None:
        words = say("{n} groups by default", n=fit.spec.groups.count)
        study.find("default", Difference("groups", words), Severity.INFO, Verdict.SEMANTIC, call)


def _counter(study: Study, call: Call, answer: Answer) -> None:
    if study.spec.running is not None and answer.batches is None and study.spec.running.counted:
        study.spec = replace(study.spec, running=replace(study.spec.running, counted=False))
        words = say("no counter of batches")
        study.find("default", Difference("counter", words), Severity.INFO, Verdict.SEMANTIC, call)


def _unexplained(study: Study, call: Call, aspect: str) -> None:
    words = say("differs, and no specification that was tried explains it")
    difference = Difference("unexplained", words)
    study.find("default", difference, Severity.ERROR, Verdict.SEMANTIC, call, aspect=aspect)
