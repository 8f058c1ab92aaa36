"""L011 reduction-or-scale: a sum over the batch, with the learning rate of a mean."""

from __future__ import annotations

from tests.rules.before_training import Probing


def probed(slope: float, first_step: float | None) -> Probing:
    probing = Probing().number("probe.loss_slope", slope)
    return probing if first_step is None else probing.number("probe.first_step", first_step)


def test_fires_for_a_sum_whose_first_step_is_long():
    (finding,) = probed(1.0, 12.0).findings("L011")
    assert "would move the weights by 12 of their norm" in finding.evidence.message
    assert 'reduction="mean"' in finding.evidence.fix


def test_silent_for_a_mean():
    assert not probed(0.0, 12.0).findings("L011")


def test_silent_for_a_learning_rate_made_for_the_sum():
    assert not probed(1.0, 0.004).findings("L011")


def test_silent_where_the_optimizer_normalizes_its_steps():
    assert not probed(1.0, None).findings("L011")
