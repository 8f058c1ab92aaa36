"""L007 input-scale: numbers of an unsuitable scale."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.facts import Json

NORMAL: dict[str, Json] = {
    "mean": 0.0, "std": 1.0, "min": -3.0, "max": 3.0, "greatest_rms": 1.1, "median_rms": 1.0,
    "feature": 0, "features": 20, "normalized": False,
}  # fmt: skip


def seen(rms: float = 1.0, **changes: Json) -> Probing:
    run = Probing().number("probe.input_rms", rms, "fc")
    return run.seen("input-scale", "fc", **{**NORMAL, **changes})


@pytest.mark.parametrize(
    ("rms", "changes", "words"),
    [
        (120.0, {"min": 0.0, "max": 255.0, "mean": 100.0, "std": 70.0}, "from 0 to 255"),
        (1e-4, {"min": 0.0, "max": 4e-4}, "RMS of 0.0001"),
        (0.95, {"mean": 0.95, "std": 0.05}, "19 standard deviations from 0"),
        (1.0, {"marks": 5, "mark": -5.5, "marked": 3}, "-5.5 stands in them again and again, in 3"),
        (20.0, {"mean": 20.0, "std": 0.5}, "40 standard deviations from 0"),
        (10.0, {"greatest_rms": 5000.0, "feature": 3}, "feature 3 of 20 has 5000 times"),
    ],
)
def test_fires_for_numbers_of_another_scale(rms: float, changes: dict[str, Json], words: str):
    (finding,) = seen(rms, **changes).findings("L007")
    assert words in finding.evidence.message


@pytest.mark.parametrize(
    ("rms", "changes"),
    [
        (1.0, {}),
        (0.45, {"mean": 0.28, "std": 0.35, "min": 0.0, "max": 1.0}),
        (0.2, {"mean": 0.2, "std": 0.01}),
        (0.01, {"min": 0.0, "max": 0.3}),
        (8.0, {"greatest_rms": 900.0}),
    ],
)
def test_silent_for_usual_numbers(rms: float, changes: dict[str, Json]):
    assert not seen(rms, **changes).findings("L007")


def test_silent_where_a_normalization_follows():
    assert not seen(120.0, max=255.0, normalized=True).findings("L007")
