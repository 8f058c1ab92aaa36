"""Tables of a quantity: the numbers that `Quantity.derive` gives, thinned without hiding any."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from traindx.quantities import QUANTITIES
from traindx.records import Point, Record, Scalar, Site, TensorStats
from traindx.report.figures.tables import measured_quantities, table
from traindx.report.figures.thinning import ABSENT, extremes, spread, stretches
from traindx.run import Run

SITE = Site("net", "a")


def run_of_records() -> Run:
    rng = random.Random(1)
    run = Run()
    for step in range(40):
        mean = rng.gauss(0, 1) if step != 7 else math.nan
        stats = TensorStats(10, mean, rng.random(), -2.0, 3.0, int(step == 7), 8, rng.randrange(9))
        for point in (Point.OUTPUT, Point.GRAD, Point.APPLIED_GRAD, Point.OUTPUT_GRAD, Point.INPUT):
            run.add(Record(step, SITE, point, stats))
    return run


@pytest.mark.parametrize("name", [name for name, q in QUANTITIES.items() if q.derive])
def test_a_table_holds_what_the_quantity_derives(name: str) -> None:
    run = run_of_records()
    found, series = table(run, name), run.at(name, SITE)
    assert found is not None
    assert series is not None
    np.testing.assert_allclose(found.values[0], series.values, rtol=1e-12)


def test_what_was_not_measured_is_absent_and_not_nan() -> None:
    run = Run([Scalar(0, "lr", math.nan, Site("a")), Scalar(0, "lr", 1.0, Site("b")),
               Scalar(1, "lr", 2.0, Site("b"))])  # fmt: skip
    found = table(run, "lr")
    assert found is not None
    assert found.values[0, 1] == ABSENT
    assert math.isnan(found.values[0, 0])
    assert measured_quantities(run) == ["lr"]
    assert table(run, "loss") is None


def test_stretches_keep_peaks_dips_and_what_is_not_finite() -> None:
    steps = np.arange(10_001)
    values = np.sin(np.stack([steps / 50, steps / 70]))
    values[0, 1234], values[1, 4321], values[1, 7000] = 77.0, math.nan, -77.0
    kept_steps, kept = stretches(steps, values, 200)
    assert len(kept_steps) <= 201
    assert len(set(kept_steps.tolist())) == len(kept_steps)
    assert kept_steps[0] == 0
    assert kept_steps[-1] == 10_000
    assert kept[0].max() == 77.0
    assert np.nanmin(kept[1]) == -77.0
    assert np.isnan(kept[1]).sum() == 1


def test_a_stretch_in_which_nothing_was_measured_stays_empty() -> None:
    values = np.full((1, 100), ABSENT)
    values[0, :10] = 1.0
    _, kept = stretches(np.arange(100), values, 20)
    assert set(kept[0].tolist()) == {1.0, ABSENT}
    assert kept[0, -1] == ABSENT


def test_spread_keeps_the_ends() -> None:
    assert spread(range(10), 4) == [0, 3, 6, 9]
    assert spread(range(3), 4) == [0, 1, 2]
    assert spread(range(3), 1) == [2]
    assert spread(range(3), 0) == []


def test_thinning_keeps_peaks_and_what_is_not_finite() -> None:
    points = [(i, math.sin(i / 50)) for i in range(10_000)]
    points[1234] = (1234, 77.0)
    points[4321] = (4321, math.nan)
    points[7000] = (7000, -77.0)
    kept = extremes(points, 200)
    assert (1234, 77.0) in kept
    assert (7000, -77.0) in kept
    assert 4321 in [step for step, _ in kept]
    assert kept == sorted(kept, key=lambda point: point[0])
