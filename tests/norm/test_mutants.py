"""Thirteen ways in which a normalization is wrong, each told from the right one by our own cases.

A mutant is a changed specification; a case kills it where its answer leaves that of the rational
twin of the right one. Official vectors leave three of them alive: float32 in one pass, the window
of an even LRN, alpha not divided by the size.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.norm.cases import CASES, Case
from tests.norm.twins import FORWARD, apart, used
from traindx.norm import exact_layers
from traindx.norm.choices import EpsPlacement, Estimator, GroupOrder, Passes, Scale
from traindx.norm.emulate import emulate
from traindx.norm.layers import layer_norm
from traindx.norm.reference import RunningStats, evaluate, forward, updated
from traindx.norm.spec import NormSpec, Window

Mutation = Callable[[NormSpec], NormSpec]


def is_batch_norm(spec: NormSpec) -> bool:
    return spec.kind == "BatchNorm"


def is_layer_norm(spec: NormSpec) -> bool:
    return spec.kind == "LayerNorm"


def is_rms_norm(spec: NormSpec) -> bool:
    return spec.kind == "RMSNorm"


def unbiased_running(spec: NormSpec) -> NormSpec:
    assert spec.running is not None
    other = {Estimator.BIASED: Estimator.UNBIASED}.get(spec.running.variance, Estimator.BIASED)
    return replace(spec, running=replace(spec.running, variance=other))


def swapped_momentum(spec: NormSpec) -> NormSpec:
    assert spec.running is not None
    old = 0.1 if spec.running.momentum is None else spec.running.momentum
    return replace(spec, running=replace(spec.running, momentum=1 - old))


def eps_outside(spec: NormSpec) -> NormSpec:
    return replace(spec, eps_placement=EpsPlacement.OUTSIDE_ROOT)


def eps_ignored(spec: NormSpec) -> NormSpec:
    return replace(spec, eps=1e-300)  # lost beside any spread, where 0 is refused


def window(**changes: Callable[[Window], Any]) -> Mutation:
    def changed(spec: NormSpec) -> NormSpec:
        assert spec.window is not None
        new = {key: change(spec.window) for key, change in changes.items()}
        return replace(spec, window=replace(spec.window, **new))

    return changed


def interleaved(spec: NormSpec) -> NormSpec:
    assert spec.groups is not None
    return replace(spec, groups=replace(spec.groups, order=GroupOrder.INTERLEAVED))


def is_blocked_group_norm(spec: NormSpec) -> bool:
    blocked = spec.groups is not None and spec.groups.order is GroupOrder.BLOCKED
    return spec.kind == "GroupNorm" and blocked


def is_even_lrn(spec: NormSpec) -> bool:
    return spec.window is not None and spec.window.before != spec.window.after


def is_lrn(spec: NormSpec) -> bool:
    return spec.window is not None


MUTANTS: dict[str, tuple[Callable[[NormSpec], bool], Mutation, str]] = {
    "BatchNorm: the other running estimator": (is_batch_norm, unbiased_running, "running"),
    "BatchNorm: momentum of the old value": (is_batch_norm, swapped_momentum, "running"),
    "BatchNorm: eps outside in evaluation": (is_batch_norm, eps_outside, "evaluation"),
    "BatchNorm: eps ignored in evaluation": (is_batch_norm, eps_ignored, "evaluation"),
    "LayerNorm: unbiased": (
        is_layer_norm,
        lambda spec: replace(spec, variance=Estimator.UNBIASED),
        "output",
    ),
    "LayerNorm: eps outside": (is_layer_norm, eps_outside, "output"),
    "GroupNorm: interleaved groups": (is_blocked_group_norm, interleaved, "output"),
    "RMSNorm: eps outside": (is_rms_norm, eps_outside, "output"),
    "RMSNorm: 1 + w": (is_rms_norm, lambda spec: replace(spec, weight_offset=1.0), "output"),
    "RMSNorm: eps ignored": (is_rms_norm, eps_ignored, "output"),
    "LRN: the other even window": (
        is_even_lrn,
        window(before=lambda at: at.after, after=lambda at: at.before),
        "output",
    ),
    "LRN: alpha not divided by the size": (
        is_lrn,
        window(alpha=lambda at: at.alpha * (at.before + 1 + at.after)),
        "output",
    ),
}


def killed_by(spec: NormSpec, case: Case, what: str) -> bool:
    """Whether `spec` answers a case otherwise than the case's own, computed in fractions."""
    return max(deviations(spec, case, what)) > FORWARD


def deviations(spec: NormSpec, case: Case, what: str) -> list[float]:
    x, (state, given) = case.x.tolist(), used(case)
    if what == "output":
        right = exact_layers.forward(case.spec, x, given)
        ours = forward(spec, case.x, case.weight, case.bias, running=state, mask=case.mask)
        return [apart(right, ours)]
    assert isinstance(state, RunningStats)
    if what == "evaluation":
        right = exact_layers.evaluate(case.spec, x, given)
        return [apart(right, evaluate(spec, state, case.x, case.weight, case.bias))]
    mean, var = exact_layers.running(case.spec, x, given.running_mean, given.running_var, 2)
    after = updated(spec, state, case.x)
    return [apart(mean, after.mean), apart(var, after.var)]


def cases_of(applies: Callable[[NormSpec], bool], what: str) -> list[Case]:
    fitting = [case for case in CASES.values() if applies(case.spec) and case.mask is None]
    return [case for case in fitting if what == "output" or case.running is not None]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_killed_and_the_layer_it_was_made_of_survives(name: str) -> None:
    applies, mutate, what = MUTANTS[name]
    cases = cases_of(applies, what)
    assert any(killed_by(mutate(case.spec), case, what) for case in cases)
    assert not any(killed_by(case.spec, case, what) for case in cases)


def one_pass_error(passes: Passes) -> float:
    """The error of a float32 LayerNorm at a mean of 1000, over what its condition allows."""
    x = np.random.default_rng(3).normal(1000, 1, (5, 64)).astype(np.float32)
    right = forward(layer_norm(), x)
    error = np.max(np.abs(emulate(layer_norm(passes=passes), x) - right))
    return float(error / (4 * np.finfo(np.float32).eps * (1 + 1000)))


def test_a_float32_layer_norm_in_one_pass_is_killed_at_a_large_mean() -> None:
    assert one_pass_error(Passes.TWO) <= 1
    assert one_pass_error(Passes.ONE) > 10
    assert one_pass_error(Passes.ONE_CLIPPED) > 10


def test_every_case_is_of_use_somewhere() -> None:
    scales = {case.spec.scale for case in CASES.values()}
    assert scales == set(Scale)
    assert {case.spec.eps_placement for case in CASES.values()} == set(EpsPlacement)
