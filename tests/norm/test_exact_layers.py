"""Every kind of layer: the float64 reference against rational arithmetic and dual numbers."""

from dataclasses import replace

import pytest

from tests.norm.cases import CASES
from tests.norm.twins import BACKWARD, FORWARD, apart, used
from traindx.norm import exact_layers
from traindx.norm.reference import (
    Gradients,
    RunningStats,
    backward,
    double_backward,
    evaluate,
    forward,
    updated,
)


@pytest.mark.parametrize("name", CASES)
def test_forward_agrees_with_fractions_to_1e_12(name: str) -> None:
    case = CASES[name]
    y = forward(case.spec, case.x, case.weight, case.bias, running=case.running, mask=case.mask)
    exact = exact_layers.forward(case.spec, case.x.tolist(), used(case)[1])
    assert apart(exact, y) <= FORWARD


@pytest.mark.parametrize("name", CASES)
def test_backward_agrees_with_dual_numbers_to_1e_10(name: str) -> None:
    case = CASES[name]
    state, given = used(case)
    ours = backward(case.spec, case.dy, case.x, case.weight, running=state, mask=case.mask)
    exact = exact_layers.backward(case.spec, case.dy.tolist(), case.x.tolist(), given)
    assert apart(exact, ours.x) <= BACKWARD


@pytest.mark.parametrize("name", CASES)
def test_double_backward_agrees_with_duals_of_duals_to_1e_10(name: str) -> None:
    case = CASES[name]
    state, given = used(case)
    seeds = Gradients(case.h)
    ours = double_backward(
        case.spec, seeds, case.dy, case.x, case.weight, running=state, mask=case.mask
    )
    exact = exact_layers.bend(case.spec, case.dy.tolist(), case.x.tolist(), case.h.tolist(), given)
    assert apart(exact, ours.x) <= BACKWARD


TRACKED = [
    name
    for name, case in CASES.items()
    if case.spec.running and isinstance(case.running, RunningStats) and case.mask is None
]


@pytest.mark.parametrize("name", TRACKED)
def test_running_statistics_and_evaluation_agree_with_fractions(name: str) -> None:
    case = CASES[name]
    state, given = case.running, case.given
    assert isinstance(state, RunningStats)
    after = updated(case.spec, state, case.x)
    mean, var = exact_layers.running(
        case.spec, case.x.tolist(), given.running_mean, given.running_var, 2
    )
    assert max(apart(mean, after.mean), apart(var, after.var)) <= FORWARD
    ours = evaluate(case.spec, after, case.x, case.weight, case.bias)
    shown = replace(given, running_mean=mean, running_var=var)
    assert apart(exact_layers.evaluate(case.spec, case.x.tolist(), shown), ours) <= FORWARD
