"""L010 augmentation-wrong: noise in another unit, and random numbers that repeat."""

from __future__ import annotations

import pytest

from tests.rules.probing import Probed
from traindx.findings import Finding, Severity


def noisy(random: float, lasting: float, sure: float = 4.0) -> list[Finding]:
    numbers = {"random_part": random, "lasting_part": lasting}
    return Probed("L010", "augmentation-noise", **numbers).seen(sure=sure, samples=64).findings()


def test_fires_for_noise_in_grey_levels_on_standardized_images():
    (finding,) = noisy(20.0, 0.83)
    assert finding.severity is Severity.ERROR
    assert finding.evidence.message == (
        "what is random of the training's samples varies by 20, and what is the same each time "
        "they are read by 0.83: there is 24 times as much noise as data"
    )


@pytest.mark.parametrize(
    ("random", "lasting", "sure"),
    [
        (2.9, 0.5, 50),  # strong, and still in the unit of the data
        (20.0, 60.0, 50),  # grey levels on grey levels
        (60.0, 9.0, 50),  # crops of pixels that are not scaled
        (1.0, 0.02, 10),  # crops of a sound
        (20.0, 0.83, 1.0),  # simulated: nothing lasts
    ],
)
def test_silent_of_what_may_be_meant(random: float, lasting: float, sure: float):
    assert not noisy(random, lasting, sure)


def dice(workers: float, passes: float) -> list[Finding]:
    return Probed("L010", "worker-dice", workers_alike=workers, passes_alike=passes).findings()


def test_warns_of_workers_that_draw_the_same_numbers():
    (finding,) = dice(1, 1)
    assert finding.severity is Severity.WARNING
    assert "two workers" in finding.evidence.message


def test_warns_of_passes_that_draw_the_same_numbers():
    (finding,) = dice(0, 1)
    assert "a second pass" in finding.evidence.message


def test_silent_of_workers_with_numbers_of_their_own():
    assert not dice(0, 0)


def turned(alone: float, together: float) -> list[Finding]:
    numbers = {"turned_alone": alone, "turned_together": together}
    return Probed("L010", "augmented-samples", **numbers).findings()


def test_fires_for_pictures_that_are_turned_without_their_masks():
    (finding,) = turned(7, 0)
    assert finding.severity is Severity.ERROR
    assert "flipped or rotated in 7 readings" in finding.evidence.message


@pytest.mark.parametrize(("alone", "together"), [(0, 9), (2, 0), (3, 4), (0, 0)])
def test_silent_of_both_that_are_turned_together(alone: float, together: float):
    assert not turned(alone, together)


@pytest.mark.parametrize(("share", "count"), [(1.0, 1), (0.3, 0), (0.0, 0)])
def test_warns_of_evaluation_data_that_change_by_chance(share: float, count: int):
    probed = Probed("L010", "augmented-samples", turned_alone=0, turned_together=0)
    probed.number("evaluation_random", share, "test_loader")
    found = probed.findings()
    assert len(found) == count
    assert all("`test_loader`" in one.evidence.message for one in found)
