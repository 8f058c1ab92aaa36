"""What is kept of a long series: extremes and first occurrences, the same however it came."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest

from traindx import columns as columns_
from traindx import series as series_
from traindx.columns import Columns
from traindx.records import Site, TensorStats
from traindx.series import Series
from traindx.thinning import HEAD, TAIL, Pins, StepSet

NET = Site("net")


def noise(count: int, seed: int = 0) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0.0, 1.0) for _ in range(count)]


def grown(values: list[float], every: int = 1, pins: Pins | None = None) -> Series:
    series = Series("loss", NET, pins)
    for i, value in enumerate(values):
        series.append(i * every, value)
    return series


def told(series: Series) -> object:
    return repr(list(series)), series.count, series.num_nonzero, series.last_finite, (
        series.unchanged_since
    )  # fmt: skip


def test_a_short_series_is_kept_whole() -> None:
    values = noise(series_.MOST - 1)
    assert [*grown(values)] == [*enumerate(values)]


def test_a_series_of_any_length_has_no_more_than_its_most() -> None:
    series = Series("loss", NET)
    longest = 0
    for i, value in enumerate(noise(100_000)):
        series.append(i, value)
        longest = max(longest, len(series))
    assert longest < series_.MOST
    assert series.count == 100_000


def test_what_is_kept_was_measured_there_and_the_ends_are_whole() -> None:
    values = noise(50_000)
    series = grown(values, every=3)
    assert all(values[step // 3] == value for step, value in series)
    steps = series.steps.tolist()
    assert steps[:HEAD] == [3 * i for i in range(HEAD)]
    assert steps[-TAIL:] == [3 * i for i in range(50_000 - TAIL, 50_000)]
    assert all(before < after for before, after in pairwise(steps))


@pytest.mark.parametrize("seed", range(3))
def test_thinning_again_and_again_leaves_what_one_thinning_would(seed: int) -> None:
    """The slow twin: of each aligned span of the whole series, its ends and extremes."""
    values = noise(30_000, seed)
    for i in random.Random(seed).sample(range(30_000), 40):
        values[i] = math.nan
    series = grown(values)
    last = max(step for step in series.steps.tolist() if step < 30_000 - series_.MOST)
    shift = next(k for k in range(64) if last >> k < series_.SPANS)
    spans: dict[int, list[int]] = {}
    for step in range(HEAD, last >> shift << shift):
        spans.setdefault(step >> shift, []).append(step)
    kept = {*series.steps.tolist()}
    for span in spans.values():
        finite = [step for step in span if math.isfinite(values[step])]
        telling = {span[0], span[-1]}
        telling |= {min(finite, key=values.__getitem__), max(finite, key=values.__getitem__)}
        telling |= {*[step for step in span if math.isnan(values[step])][:1]}
        assert telling <= kept


def test_first_occurrences_stay() -> None:
    values = [1.0 + i for i in range(20_000)]
    values[5000] = math.inf
    values[5001] = math.nan
    values[9000] = 0.5  # the first fall
    series = grown(values)
    for step in (5000, 5001, 8999, 9000):
        assert repr(series.at(step)) == repr(values[step])


def test_pinned_steps_stay() -> None:
    pins = Pins()
    pins.pin("trouble", [7001, 7003])
    series = grown([0.0] * 30_000, pins=pins)
    assert (series.at(7001), series.at(7002), series.at(7003)) == (0.0, None, 0.0)
    pins.pin("trouble", [20_000])
    assert pins.steps == [20_000]


def test_counts_and_the_last_stretch_know_what_is_kept_no_more() -> None:
    values = [float(i % 2) for i in range(10_000)] + [1.0] * 40_000
    values[30_000] = math.nan
    series = grown(values)
    assert series.count == 50_000
    assert series.num_nonzero == 45_000
    assert series.unchanged_since == 30_001
    assert series.last_finite == 49_999
    broken = grown([1.0] * 3000 + [math.nan] * 30_000)
    assert broken.last_finite == 2999


@pytest.mark.parametrize("seed", range(5))
def test_it_does_not_matter_in_what_portions_the_values_come(seed: int) -> None:
    rng = random.Random(seed)
    values = [rng.choice([0.0, 1.0, math.nan, rng.random()]) for _ in range(20_000)]
    one_by_one, in_portions = grown(values), Series("loss", NET)
    at = 0
    while at < len(values):
        end = min(at + rng.choice([1, 2, 15, 40, 5000]), len(values))
        in_portions.extend(np.arange(at, end), np.array(values[at:end]))
        at = end
    assert told(in_portions) == told(one_by_one)


def stats(size: float, *, nonfinite: int = 0) -> TensorStats:
    return TensorStats(4, 0.0, 4 * size * size, -size, size, nonfinite, 4, 1)


def test_statistics_keep_the_largest_the_smallest_and_the_first_that_is_broken() -> None:
    columns = Columns()
    for step in range(30_000):
        size = {4321: 100.0, 8765: 0.001}.get(step, 1.0 + step % 7 / 10)
        columns.add(step, stats(size, nonfinite=int(step in (11_111, 11_112))))
        assert len(columns) < columns_.MOST
    assert columns.at(4321) == stats(100.0)
    assert columns.at(8765) == stats(0.001)
    assert columns.at(11_111) == stats(1.0 + 11_111 % 7 / 10, nonfinite=1)
    assert columns.last == columns.at(29_999)
    assert (columns.count, columns.additions) == (30_000, 30_000)
    assert columns.thinnings > 10


def test_micro_batches_merge_where_a_thinning_comes_between() -> None:
    columns = Columns()
    for step in range(5000):
        columns.add(step, stats(1.0))
        columns.add_row(step, (4, 0.0, 4.0, -1.0, 1.0, 0, 4, 1))
        assert columns.last.count == 8
    assert (columns.count, columns.additions) == (5000, 10_000)
    assert {found.count for found in columns.by_step().values()} == {8}


def test_a_set_of_steps_knows_its_steps() -> None:
    steps = StepSet()
    assert not steps
    assert not steps.has(np.arange(3)).any()
    for step in (2, 3, 4, 4, 9):
        steps.add(step)
    assert steps.has(np.arange(11)).nonzero()[0].tolist() == [2, 3, 4, 9]
