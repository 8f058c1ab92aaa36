"""N010: eps larger than the variance."""

from __future__ import annotations

import math

import pytest

from tests.rules.normed import layernorm_net, output
from tests.rules.recording import Recording
from traindx.findings import Severity


def run_of(
    left: float,
    *,
    weight: float = 1.0,
    bias: float = 0.0,
    affine: bool = True,
    known: bool = True,
    steps: int = 3,
    group: int = 10,
    zeros: int = 0,
) -> Recording:
    """Two layers, of which the second leaves this share of unit variance."""
    recording = Recording(layernorm_net("ln1", "ln2", affine=affine))
    for step in range(steps):
        for fqn, share in (("ln1", 1.0), ("ln2", left)):
            output(recording, step, fqn, math.sqrt(weight**2 * share + bias**2), zeros)
            recording.scalar(step, "norm.group", group, fqn)
            if affine and known:
                recording.scalar(step, "param.rms", weight, f"{fqn}.weight")
                recording.scalar(step, "param.rms", bias, f"{fqn}.bias")
        recording.measured(step)
    return recording


def test_fires_when_eps_is_larger_than_the_variance():
    (finding,) = run_of(0.3).findings("N010")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "ln2")
    assert finding.evidence.message == (
        "eps=1e-05 takes the place of the variance: of unit variance 0.3 is left behind `ln2` "
        "(threshold 0.5), in 1 of 2 normalization layers"
    )
    assert finding.evidence.cause == "The variance of its input is 0.43 times eps."


def test_is_an_error_when_next_to_nothing_is_left():
    (finding,) = run_of(0.01).findings("N010")
    assert finding.severity is Severity.ERROR


def test_weight_and_bias_are_taken_off():
    (finding,) = run_of(0.3, weight=2.0, bias=0.5).findings("N010")
    assert math.isclose(finding.evidence.numbers["left"], 0.3)
    assert run_of(0.9, weight=0.1).findings("N010") == ()


def test_fires_without_weight_and_bias():
    assert len(run_of(0.3, affine=False).findings("N010")) == 1


def test_silent_at_the_threshold_and_before_enough_steps():
    assert run_of(0.51).findings("N010") == ()
    assert run_of(0.3, steps=2).findings("N010") == ()


def test_silent_on_inputs_that_do_not_vary():
    assert run_of(0.0).findings("N010") == ()
    assert run_of(0.3, group=1).findings("N010") == ()


def test_silent_where_the_weight_is_not_known():
    assert run_of(0.3, known=False).findings("N010") == ()


def test_silent_where_a_mask_has_put_zeros_among_the_output():
    assert run_of(0.3, zeros=70).findings("N010") == ()
    assert len(run_of(0.3, zeros=10).findings("N010")) == 1


@pytest.mark.parametrize("well", range(3, 8))
def test_is_told_at_the_third_bad_output_however_long_all_was_well(well: int):
    recording = run_of(1.0, steps=well)
    bad = run_of(0.3, steps=well + 6).items
    recording.items += [item for item in bad if item.step >= well]
    (finding,) = recording.findings("N010")
    assert (finding.first_step, finding.count) == (well + 2, 4)
