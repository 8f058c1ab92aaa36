"""Finds how running statistics move, and what evaluation does with them.

The weight of the new value is not tried but solved for, by least squares over the means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from traindx.messages import say
from traindx.norm.choices import Estimator
from traindx.norm.conformance.fit import Fit, Seen, agrees, eps_words, other_estimators
from traindx.norm.conformance.naming import Difference, number
from traindx.norm.conformance.precision import Numbers
from traindx.norm.conformance.target import Answer, Call
from traindx.norm.passes import RunningStats
from traindx.norm.reference import fresh, updated
from traindx.norm.spec import NormSpec


def fit_running(expected: NormSpec, seen: Seen) -> Fit | None:
    """The nearest specification whose running statistics are those seen, momentum solved for."""
    rule = expected.running
    if rule is None or agrees(expected, seen, ("running_mean", "running_var")):
        return Fit(expected)
    found = _momentum(expected, seen)
    momenta = [rule.momentum] if found is None else [rule.momentum, found]
    for momentum, estimator in product(momenta, (rule.variance, *other_estimators(rule.variance))):
        spec = replace(expected, running=replace(rule, momentum=momentum, variance=estimator))
        if agrees(spec, seen, ("running_mean", "running_var")):
            return Fit(spec, tuple(_running_words(expected, spec)))
    return None


def fit_evaluation(expected: NormSpec, seen: Seen) -> Fit | None:
    """The nearest specification whose outputs in evaluation are those seen."""
    if agrees(expected, seen):
        return Fit(expected)
    as_training = [(call.where(training=True), answer) for call, answer in seen]
    if agrees(expected, as_training):
        words = say("evaluation uses the batch's statistics")
        return Fit(expected, (Difference("evaluation-by-batch", words),))
    if all(_moves_first(expected, call, answer) for call, answer in seen):
        words = say("evaluation moves the running statistics by the batch, and then uses them")
        return Fit(expected, (Difference("evaluation-moves", words),))
    for eps in (1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-12):
        spec = replace(expected, eps=eps)
        if agrees(spec, seen):
            return Fit(expected, (Difference("evaluation-eps", eps_words(spec, expected)),))
    return None


def _moves_first(spec: NormSpec, call: Call, answer: Answer) -> bool:
    if spec.running is None or call.running is None:
        return False
    biased = replace(spec, running=replace(spec.running, variance=Estimator.BIASED))
    after = updated(biased, RunningStats(*call.running), call.x)
    moved = call.where(running=(np.asarray(after.mean), np.asarray(after.var)))
    return agrees(spec, [(moved, answer)])


def _momentum(spec: NormSpec, seen: Seen) -> float | None:
    """The weight of the new mean, by least squares over what was seen."""
    rule, along, size = spec.running, 0.0, 0.0
    assert rule is not None, "asked of layers that keep running statistics"
    for call, answer in seen:
        if answer.running is None:
            return None
        batch = _batch_mean(spec, call)
        if batch.shape != answer.running[0].shape:
            return None
        before = np.zeros_like(batch) if call.running is None else call.running[0]
        along += float(np.sum((answer.running[0] - before) * (batch - before)))
        size += float(np.sum((batch - before) ** 2))
    found = along / size if size else np.nan
    if not np.isfinite(found) or not -1e-6 <= found <= 1 + 1e-6:
        return None
    return min(max(_neat_momentum(found), 0.0), 1.0)


def _neat_momentum(value: float) -> float:
    for digits in (1, 2, 3, 4):
        short = round(value, digits)
        if abs(short - value) < 1e-5:
            return short
    return value


def _batch_mean(spec: NormSpec, call: Call) -> Numbers:
    rule = spec.running
    assert rule is not None, "asked of layers that keep running statistics"
    all_new = replace(spec, running=replace(rule, momentum=1.0, variance=Estimator.BIASED))
    return np.asarray(updated(all_new, fresh(spec, call.x.shape), call.x).mean)


def _running_words(expected: NormSpec, found: NormSpec) -> Iterator[Difference]:
    before, after = expected.running, found.running
    assert before is not None, "the expected layer keeps running statistics"
    assert after is not None, "and so does what was found"
    if after.momentum == 0:
        yield Difference("running-frozen", say("running statistics do not move"))
    elif after.momentum != before.momentum:
        old = None if before.momentum is None else round(1 - before.momentum, 9)
        if after.momentum == old:
            words = say("momentum is the weight of the old value, not of the new")
            yield Difference("momentum-swapped", words)
        else:
            words = say(
                "the new value weighs {found}, not {expected}",
                found=number(after.momentum),
                expected=number(before.momentum),
            )
            yield Difference("momentum", words)
    if after.variance is not before.variance:
        words = say(
            "running variance {found}, not {expected}",
            found=after.variance.value,
            expected=before.variance.value,
        )
        yield Difference("running-variance", words)
