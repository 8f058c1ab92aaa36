"""L018 data-order: data sorted by class, read in that order."""

from __future__ import annotations

from tests.rules.before_training import Probing


def probed(alike: float, chance: float) -> Probing:
    return Probing().number("probe.neighbours_alike", alike).number("probe.any_two_alike", chance)


def test_fires_for_classes_in_order():
    (finding,) = probed(0.97, 0.1).findings("L018")
    assert "in 97% of the cases, and any two samples in 10%" in finding.evidence.message
    assert "shuffle=True" in finding.evidence.fix


def test_silent_for_data_that_are_mixed():
    assert not probed(0.12, 0.1).findings("L018")


def test_silent_where_nearly_all_are_of_one_class():
    assert not probed(0.95, 0.94).findings("L018")


def test_silent_for_groups_that_are_shorter_than_a_batch():
    assert not probed(0.5, 0.1).findings("L018")
