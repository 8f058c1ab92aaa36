"""Numbers that come in whole rows are kept as if they came one by one."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Sequence

import numpy as np
import pytest

from traindx import columns as columns_
from traindx import ledger, thinning
from traindx import series as series_
from traindx.derived import derived
from traindx.measured import LONG
from traindx.quantities import QUANTITIES
from traindx.records import (
    Bundle,
    Event,
    EventKind,
    Item,
    Point,
    Site,
    TensorStats,
    one_by_one,
)
from traindx.run import Run

WEIGHTS = tuple(Site("net", f"layers.{i}.weight") for i in range(LONG))
LAYERS = tuple(Site("net", f"layers.{i}") for i in range(LONG))
BAD = TensorStats(4, math.nan, math.nan, math.nan, math.nan, 2, 4, 0)


def stats(rng: random.Random) -> TensorStats:
    if rng.random() < 0.002:
        return BAD
    return TensorStats(4, rng.gauss(0, 1), rng.random(), -rng.random(), rng.random(), 0, 4, 1)


def bundle(
    step: int,
    places: tuple[tuple[Point, Site], ...],
    names: tuple[tuple[str, Site], ...],
    rng: random.Random,
) -> Bundle:
    counts, moments = array("q"), array("d")
    for found in (stats(rng) for _ in places):
        counts.extend((found.count, found.nonfinite, found.sampled, found.zeros))
        moments.extend((found.mean, found.m2, found.min, found.max))
    values = [rng.choice([0.0, 1.0, rng.gauss(0, 1), rng.gauss(0, 1)]) for _ in names]
    if rng.random() < 0.05:
        values[rng.randrange(len(values))] = math.nan
    return Bundle(step, places, counts, moments, names, array("d", values))


GRADS = tuple((Point.GRAD, site) for site in WEIGHTS)
OUTPUTS = tuple((Point.OUTPUT, site) for site in LAYERS)
SIZES = tuple(("param.rms", site) for site in WEIGHTS)
SHARES = tuple(("output.batch_share", site) for site in LAYERS)


def written(num_steps: int, *, twice: bool = False) -> list[Item]:
    """Measured steps, every fourth with more, some with evaluations or micro-batches."""
    rng = random.Random(0)
    items: list[Item] = []
    for step in range(num_steps):
        names = SIZES + SHARES if step % 4 == 0 else SIZES
        places = GRADS + OUTPUTS + OUTPUTS[:2] if twice and step % 7 == 0 else GRADS + OUTPUTS
        items.append(bundle(step, places, names, rng))
        if twice and step % 5 == 0:  # another micro-batch of the same step
            items.append(bundle(step, OUTPUTS, SHARES, rng))
        if step % 50 == 3:
            items.append(Event(step, EventKind.EVALUATION, Site("net"), {"training": False}))
        items.append(Event(step, EventKind.MEASURED))
    return items


def told(run: Run) -> list[object]:
    """Everything that a run holds of its numbers."""
    series = [s for q in ("param.rms", "output.batch_share", "grad.rms") for s in run.series(q)]
    found: list[object] = [
        (
            s.quantity,
            s.site,
            repr(list(s)),
            s.count,
            s.num_nonzero,
            s.last_finite,
            s.unchanged_since,
        )
        for s in series
    ]
    for point in (Point.GRAD, Point.OUTPUT):
        found += [(site, repr(run.stats(point, site))) for site in run.sites_of(point)]
    return found


@pytest.mark.parametrize("twice", [False, True])
def test_rows_are_kept_as_if_one_by_one(twice: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "HEAD", 16)
    monkeypatch.setattr(thinning, "TAIL", 40)
    for module in (series_, columns_):
        monkeypatch.setattr(module, "MOST", 256)
        monkeypatch.setattr(module, "SPANS", 8)
    items = written(300, twice=twice)
    assert told(Run(items)) == told(Run(one_by_one(items)))


def test_it_does_not_matter_when_somebody_looks() -> None:
    items, seen = written(60), Run()
    for i, item in enumerate(items):
        seen.add(item)
        if i % 11 == 0:
            told(seen)
    assert told(seen) == told(Run(items))


def test_the_newest_numbers_are_the_last_ones_of_each_series() -> None:
    run = Run(written(30))
    asked = (WEIGHTS[3], Site("net", "none"), WEIGHTS[0])
    newest = run.newest("grad.rms", asked)
    last = [run.at("grad.rms", site) for site in (asked[0], asked[2])]
    assert newest.steps.tolist() == [29, ledger.NEVER, 29]
    assert newest.values[[0, 2]].tolist() == [series.last for series in last if series]
    assert math.isnan(newest.values[1])
    of_model = run.newest("output.batch_share", model="net")
    assert of_model.steps.tolist() == [28] * LONG
    assert repr(of_model.values.tolist()) == repr(
        [s.last for s in run.series("output.batch_share")]
    )
    assert not len(run.newest("param.rms", model="other").steps)


def test_the_newest_numbers_of_rows_that_hold_different_places() -> None:
    run, rng = Run(), random.Random(0)
    sites = tuple(Site("net", f"{i}") for i in range(LONG + 4))
    rows = [tuple(("param.rms", site) for site in some) for some in (sites[:LONG], sites[4:])]
    for step, names in enumerate([rows[0], rows[0], rows[1], rows[1], rows[0], rows[1]]):
        run.add(bundle(step, (), names, rng))
    newest = run.newest("param.rms", sites)
    assert newest.steps.tolist() == [4] * 4 + [5] * LONG
    assert newest.values.tolist() == [series.last for series in run.series("param.rms")]


def test_the_newest_of_a_place_that_is_written_by_itself() -> None:
    run = Run([*written(30), *one_by_one([bundle(30, GRADS[:1], SIZES[:1], random.Random(9))])])
    assert run.newest("grad.rms", WEIGHTS[:2]).steps.tolist() == [30, 29]
    assert run.newest("param.rms", WEIGHTS[:2]).steps.tolist() == [30, 29]


def test_recent_numbers_are_the_ends_of_the_series() -> None:
    run = Run(written(30))
    found = run.recent("param.rms", WEIGHTS[4:6], 10)
    assert found is not None
    tails = [series.tail(10) for site in WEIGHTS[4:6] if (series := run.at("param.rms", site))]
    assert repr(found.T.tolist()) == repr([list(tail) for tail in tails])


@pytest.mark.parametrize(
    ("sites", "window"), [(WEIGHTS[:1], 17), ((Site("net", "none"),), 3), ((), 3)]
)
def test_what_was_not_measured_together_is_not_told_together(
    sites: tuple[Site, ...], window: int
) -> None:
    assert Run(written(30)).recent("param.rms", sites, window) is None


def test_numbers_that_came_by_themselves_are_no_row() -> None:
    run = Run([*written(30), *one_by_one([bundle(30, GRADS, SIZES, random.Random(9))])])
    assert run.recent("param.rms", WEIGHTS, 3) is None


def test_what_was_added_is_counted() -> None:
    run = Run(written(8))
    before = run.additions("param.rms"), run.additions("output.batch_share")
    run.add(bundle(8, GRADS, SIZES, random.Random(0)))
    after = run.additions("param.rms"), run.additions("output.batch_share")
    assert after[0] > before[0]
    assert after[1] == before[1]
    assert run.additions("lr") == 0


def rows_of(some: Sequence[TensorStats]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(
        [(s.count, s.mean, s.m2, s.min, s.max, s.nonfinite, s.sampled, s.zeros) for s in some],
        np.float64,
    )


@pytest.mark.parametrize(
    "quantity", [name for name, known in QUANTITIES.items() if known.point is Point.OUTPUT]
)
def test_what_follows_from_many_records_is_what_follows_from_each(quantity: str) -> None:
    rng = random.Random(1)
    some = [stats(rng) for _ in range(200)]
    some += [
        BAD,
        TensorStats(0, math.nan, math.nan, math.nan, math.nan),
        TensorStats(3, math.inf, math.inf, -1.0, math.inf, 1, 3, 0),
        TensorStats(3, 1e200, 1.0, -1.0, 1e200, 0, 3, 3),
        TensorStats(3, -0.0, -1e-20, -0.0, 0.0, 0, 0, 0),
    ]
    known = QUANTITIES[quantity]
    assert known.derive is not None
    with np.errstate(all="raise"):
        found = derived(known, rows_of(some))
    assert repr(found.tolist()) == repr([known.derive(one) for one in some])
