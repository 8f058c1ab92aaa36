"""O013 learning-rate-range on runs written by hand."""

from __future__ import annotations

import pytest

from tests.rules.probing import Probed


def tried(rate: float, *, given: bool = True) -> Probed:
    run = Probed("O013", "learning-rate", lr=rate, lr_low=1e-3, lr_high=1e-2)
    return run.seen(optimizer="Adam", steps=4, set=given)


@pytest.mark.parametrize(("rate", "cause"), [(9e-6, "too small"), (0.31, "so large")])
def test_fires_far_outside_of_the_interval(rate: float, cause: str):
    (found,) = tried(rate).findings()
    assert cause in found.evidence.cause
    assert "outside of 0.001 to 0.01" in found.evidence.message
    assert found.evidence.fix == "lr=0.0032"


@pytest.mark.parametrize("rate", [1.1e-5, 1e-4, 5e-3, 0.1, 0.29])
def test_silent_within_and_near_it(rate: float):
    assert tried(rate).findings() == []


def test_silent_where_the_rate_is_not_set_yet():
    assert tried(1e-9, given=False).findings() == []
