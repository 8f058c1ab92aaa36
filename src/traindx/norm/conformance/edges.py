"""What a layer does where its formula says nothing: a single element, no element, a mask."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traindx.findings import Severity
from traindx.messages import say
from traindx.norm.choices import EmptyBatch, OneSample
from traindx.norm.conformance import cases
from traindx.norm.conformance.naming import Difference
from traindx.norm.conformance.study import Study, Verdict, defined, verdict
from traindx.norm.conformance.target import Answer, Call
from traindx.norm.spec import Mask


def study_lone(study: Study) -> None:
    """One element a statistic."""
    for shape in cases.LONE.get(study.kind.name, ()):
        if study.spec.affine is not None and -1 in study.spec.affine.named:
            shape = (shape[0], *shape[2:], *shape[1:2])
        x = cases.random(31, shape) + 3
        call = Call(
            study.layer, x.astype(np.float32).astype(float), options=dict(study.kind.needed)
        )
        answer = study.ask("one element", call)
        if answer is None:
            continue
        found, expected = _one_sample(answer, call), _policy(study, shape)
        if found is not expected:
            if found is None:
                words = say("a single element gives {got}", got=f"{answer.y.flat[0]:.3g}")
            else:
                words = say(
                    "a single element: {found}, not {expected}",
                    found=_ONE[found],
                    expected=_ONE[expected],
                )
            severe = Severity.WARNING if found is None else Severity.INFO
            verdict = Verdict.RAISES if answer.raised else Verdict.SEMANTIC
            study.find("edge", Difference("one-sample", words), severe, verdict, call)
        if answer.running is not None and not np.all(np.isfinite(answer.running[1])):
            words = say("a single element makes the running variance NaN")
            difference = Difference("one-sample-poisons", words)
            study.find(
                "edge", difference, Severity.WARNING, Verdict.NON_FINITE, call, aspect="running_var"
            )


_ONE = {
    OneSample.REFUSE: say("raises"),
    OneSample.REFUSE_LONE: say("raises"),
    OneSample.COMPUTE: say("the output is the bias"),
    OneSample.IDENTITY: say("the output is the input"),
}


def _one_sample(answer: Answer, call: Call) -> OneSample | None:
    if answer.raised:
        return OneSample.REFUSE
    if np.array_equal(answer.y, call.x):
        return OneSample.IDENTITY
    return OneSample.COMPUTE if np.all(np.abs(answer.y) < 1e-3) else None


def _policy(study: Study, shape: tuple[int, ...]) -> OneSample:
    """The baseline's policy: torch's GroupNorm refuses a lone sample only."""
    expected = study.kind.spec.one_sample
    if expected is OneSample.REFUSE_LONE:
        return OneSample.REFUSE if shape[0] == 1 else OneSample.COMPUTE
    return expected


def study_empty(study: Study) -> None:
    """A batch of no samples."""
    call = Call(study.layer, np.empty((0, *cases.SHAPE[1:])), options=dict(study.kind.needed))
    answer = study.ask("empty", call)
    if answer is None:
        return
    if answer.raised:
        words = say("an empty batch raises {error}", error=answer.raised)
        study.find("edge", Difference("empty", words), Severity.INFO, Verdict.RAISES, call)
        return
    if answer.running is None:
        return
    mean, var = answer.running
    if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(var))):
        words = say("an empty batch makes running statistics NaN")
        study.find(
            "edge",
            Difference("empty", words),
            Severity.WARNING,
            Verdict.NON_FINITE,
            call,
            aspect="running_var",
        )
        study.spec = replace(study.spec, empty=EmptyBatch.POISON)
    elif np.any(mean != 0) or np.any(var != 1):
        words = say(
            "an empty batch moves running statistics to {mean} and {var}",
            mean=f"{mean.flat[0]:.3g}",
            var=f"{var.flat[0]:.3g}",
        )
        study.find(
            "edge",
            Difference("empty", words),
            Severity.WARNING,
            Verdict.SEMANTIC,
            call,
            aspect="running_var",
        )
    elif answer.batches == 1:
        study.find(
            "edge",
            Difference("empty", say("an empty batch is counted")),
            Severity.INFO,
            Verdict.SEMANTIC,
            call,
        )


def study_masks(study: Study) -> None:
    """Masks, where the layer takes one: some left out, with one channel only, and all left out."""
    if study.spec.window is not None:
        return
    expected = replace(study.spec, mask=Mask())
    # A single channel does not divide into groups.
    for channels in (6, 1) if study.spec.groups is None else (6,):
        call = cases.masked(study.kind, study.layer, channels)
        answer = study.ask("mask", call)
        if answer is None:
            return
        if answer.raised:
            words = say("a mask with {n} channels raises {error}", n=channels, error=answer.raised)
            study.find(
                "edge", Difference("mask-raises", words), Severity.ERROR, Verdict.RAISES, call
            )
        elif defined(expected, call):
            off = study.compare(call, answer, expected)["forward"]
            if off.ratio > 1:
                words = say("masked elements are not left out as they should be")
                study.find(
                    "edge",
                    Difference("mask", words),
                    Severity.ERROR,
                    verdict(off),
                    call,
                    expected=expected,
                )
    call = cases.masked(study.kind, study.layer, 6)
    call = call.where(mask=np.zeros_like(call.mask))
    answer = study.ask("mask", call)
    if answer is None or answer.raised or answer.running is None:
        return
    words = say(
        "with all masked, running mean and variance go from 0 and 1 to {mean} and {var}",
        mean=f"{answer.running[0].flat[0]:.3g}",
        var=f"{answer.running[1].flat[0]:.3g}",
    )
    if not np.all(answer.running[1] == 1):
        study.find(
            "edge",
            Difference("all-masked", words),
            Severity.WARNING,
            Verdict.SEMANTIC,
            call,
            aspect="running_var",
        )
