"""A run answers the same whether it grew or was loaded, and however its items were split."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx.errors import UsageError
from traindx.facts import LossFacts, ModelFacts, OptimizerFacts
from traindx.findings import NotEvaluated, Verdict
from traindx.records import (
    Description,
    Event,
    EventKind,
    Item,
    Point,
    Record,
    Scalar,
    Site,
    TensorStats,
)
from traindx.run import Run, Series
from traindx.store.writer import Writer

WEIGHT = Site("net", "fc.weight")
BIAS = Site("net", "fc.bias")


def stats_of(values: list[float]) -> TensorStats:
    """The reference twin: NumPy in float64."""
    if not values:
        return TensorStats(0, math.nan, 0.0, math.nan, math.nan)
    array = np.array(values, dtype=np.float64)
    m2 = float(np.square(array - array.mean()).sum())
    zeros = int((array == 0).sum())
    nonfinite = int((~np.isfinite(array)).sum())
    low, high = float(array.min()), float(array.max())
    return TensorStats(
        len(values), float(array.mean()), m2, low, high, nonfinite, len(values), zeros
    )


# -- TensorStats.merge ---------------------------------------------------------------------------


def assert_close(found: TensorStats, expected: TensorStats, scale: float) -> None:
    """Equal in everything counted, and up to rounding of numbers as large as `scale` elsewhere."""
    size = max(1, expected.count)
    rounding = 1e-14 * size * scale + math.ulp(0.0)  # the least number there is has no half
    assert found.mean == pytest.approx(expected.mean, abs=rounding, nan_ok=True)
    assert found.m2 == pytest.approx(expected.m2, rel=1e-9, abs=1e-13 * size * scale**2)
    for name in ("count", "nonfinite", "sampled", "zeros"):
        assert getattr(found, name) == getattr(expected, name)
    for name in ("min", "max"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=0, nan_ok=True)


@given(
    st.lists(st.lists(st.floats(-1e6, 1e6), max_size=20), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_merging_in_any_split_and_order_equals_numpy(parts: list[list[float]], rng: Random) -> None:
    everything = [value for part in parts for value in part]
    waiting = [stats_of(part) for part in parts]
    while len(waiting) > 1:  # any two, in any order, until one is left
        rng.shuffle(waiting)
        waiting.append(waiting.pop().merge(waiting.pop()))
    scale = max((abs(value) for value in everything), default=0.0)
    assert_close(waiting[0], stats_of(everything), scale)


@pytest.mark.parametrize("nan_first", [True, False])
def test_nan_stays_nan_whatever_it_is_merged_with(nan_first: bool) -> None:
    broken = TensorStats(2, math.nan, math.nan, math.nan, math.nan, nonfinite=1)
    sound = stats_of([1.0, 2.0])
    merged = broken.merge(sound) if nan_first else sound.merge(broken)
    assert (merged.count, merged.nonfinite) == (4, 1)
    assert all(map(math.isnan, (merged.mean, merged.m2, merged.min, merged.max)))
    assert math.isnan(merged.mean_square)


def test_nothing_merged_with_something_is_that_thing() -> None:
    nothing, something = stats_of([]), stats_of([1.0, 2.0])
    assert nothing.merge(something) == something == something.merge(nothing)
    assert math.isnan(nothing.mean_square)


# -- Series --------------------------------------------------------------------------------------


@pytest.fixture
def series() -> Series:
    series = Series("loss", Site("net"))
    for step, value in ((0, 4.0), (1, 2.0), (4, 1.0), (8, 1.0)):
        series.append(step, value)
    return series


def test_a_series_gives_its_ends_and_neighbourhoods(series: Series) -> None:
    assert (series.first, series.last, series.first_step, series.step) == (4.0, 1.0, 0, 8)
    assert (len(series), list(series)[1]) == (4, (1, 2.0))
    assert (list(series.tail(2)), list(series.tail(9))) == ([1.0, 1.0], [4.0, 2.0, 1.0, 1.0])
    assert (list(series.head(2)), list(series.head(9))) == ([4.0, 2.0], [4.0, 2.0, 1.0, 1.0])
    assert list(series.before_last(2)) == [2.0, 1.0]
    assert list(series.before_last(9)) == [4.0, 2.0, 1.0]
    assert (list(series.tail(0)), list(series.before_last(0))) == ([], [])
    assert (list(series.before(4, 9)), list(series.before(5, 1))) == ([4.0, 2.0], [1.0])


def test_a_series_knows_exactly_the_steps_that_were_measured(series: Series) -> None:
    assert [series.at(step) for step in (-1, 0, 1, 2, 4, 8, 9)] == [
        None,
        4.0,
        2.0,
        None,
        1.0,
        1.0,
        None,
    ]


def test_a_series_gives_arrays_of_its_own(series: Series) -> None:
    steps, values = series.steps, series.values
    assert (steps.dtype, values.dtype) == (np.int64, np.float64)
    assert steps.tolist() == [0, 1, 4, 8]
    values[:] = 0
    assert series.last == 1.0
    series.append(9, 3.0)  # no array holds on to the memory that grows


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from([0.0, 1.0, math.nan])), min_size=1, max_size=30
    )
)
def test_the_stretch_of_equal_values_is_what_a_walk_back_finds(
    changes: list[tuple[bool, float]],
) -> None:
    series = Series("loss", Site("net"))
    for step, (appends, value) in enumerate(changes):
        if appends or not len(series):
            series.append(step, value)
        else:
            series.replace_last(value)
        pairs = list(series)
        start = len(pairs) - 1
        while start and pairs[start - 1][1] == pairs[-1][1]:
            start -= 1
        assert series.unchanged_since == pairs[start][0]


# -- Run: growing --------------------------------------------------------------------------------


def gradient(step: int, values: list[float], site: Site = WEIGHT) -> Record:
    return Record(step, site, Point.GRAD, stats_of(values))


def test_micro_batches_of_one_step_merge_into_one() -> None:
    run = Run([gradient(0, [1.0, 2.0]), gradient(0, [6.0]), gradient(1, [5.0])])
    assert run.stats(Point.GRAD, WEIGHT)[0] == stats_of([1.0, 2.0]).merge(stats_of([6.0]))
    assert list(run.series("grad.mean")[0]) == [(0, 3.0), (1, 5.0)]
    assert run.stats(Point.GRAD, BIAS) == {}


def test_a_micro_batch_after_a_question_still_counts() -> None:
    run = Run([gradient(0, [1.0, 2.0])])
    assert run.series("grad.max")[0].last == 2.0
    run.add(gradient(0, [6.0]))
    assert list(run.series("grad.max")[0]) == [(0, 6.0)]


VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4)
STEPS = st.lists(
    st.lists(st.tuples(st.sampled_from([WEIGHT, BIAS]), VALUES), max_size=4), max_size=6
)


@given(STEPS, st.data())
def test_asking_on_the_way_changes_no_answer(
    steps: list[list[tuple[Site, list[float]]]], data: st.DataObject
) -> None:
    items = [gradient(step, v, site) for step, of_step in enumerate(steps) for site, v in of_step]
    asked, fresh = Run(), Run(items)
    for item in items:
        asked.add(item)
        if data.draw(st.booleans()):
            asked.series("grad.rms")
    for quantity in ("grad.rms", "grad.l2", "grad.zero_fraction"):
        answers = [
            [(series.site, list(series)) for series in run.series(quantity)]
            for run in (asked, fresh)
        ]
        assert answers[0] == answers[1]


def test_derived_quantities_are_those_of_the_elements() -> None:
    run = Run([gradient(0, [3.0, -4.0, 0.0, 0.0])])
    found = {
        name: run.series(f"grad.{name}")[0].last
        for name in ("mean", "std", "rms", "l2", "min", "max", "zero_fraction", "nonfinite")
    }
    assert found == pytest.approx(
        {
            "mean": -0.25,
            "std": np.std([3, -4, 0, 0]),
            "rms": 2.5,
            "l2": 5.0,
            "min": -4.0,
            "max": 3.0,
            "zero_fraction": 0.5,
            "nonfinite": 0.0,
        }
    )


def test_a_scalar_called_like_a_derived_quantity_does_not_mix_with_it() -> None:
    run = Run([Scalar(step, "grad.rms", 7.0, WEIGHT) for step in range(3)])
    run.add(gradient(3, [2.0]))
    assert list(run.series("grad.rms")[0]) == [(3, 2.0)]


# -- Run: asking ---------------------------------------------------------------------------------


def test_series_are_selected_by_model_and_path() -> None:
    sites = (Site("net", "a"), Site("critic", "a"), Site("net", "b"))
    run = Run(Scalar(0, "update.ratio", 0.1, site) for site in sites)
    assert [series.site for series in run.series("update.ratio")] == [*sites]
    assert [series.site for series in run.series("update.ratio", model="net")] == [*sites[::2]]
    assert [series.site for series in run.series("update.ratio", fqn="a")] == [*sites[:2]]
    found = run.at("update.ratio", sites[1])
    assert found is not None
    assert found.site == sites[1]
    assert run.at("update.ratio", Site("net", "c")) is None
    assert run.series("loss") == []


def test_an_unknown_quantity_names_the_nearest_known_one() -> None:
    with pytest.raises(UsageError) as caught:
        Run().series("grad.rsm")
    assert str(caught.value) == "There is no quantity `grad.rsm`. Did you mean `grad.rms`?"
    with pytest.raises(UsageError, match=r"^There is no quantity `accuracy`\.$"):
        Run().at("accuracy", WEIGHT)


def test_the_header_is_what_start_and_end_tell() -> None:
    run = Run([Event(0, EventKind.STARTED, detail={"id": "r1", "command": ["train.py"]})])
    assert (run.ended, run.steps, run.step) == (False, 0, -1)
    run.add(Scalar(0, "loss", 2.0))
    run.add(Event(1, EventKind.MEASURED))
    assert (run.steps, run.measured_steps, run.step) == (2, 1, 1)
    run.add(Event(2, EventKind.ENDED, detail={"exit_code": 0, "steps": 3}))
    assert run.header == {"id": "r1", "command": ["train.py"], "exit_code": 0, "steps": 3}
    assert (run.ended, run.steps) == (True, 3)


def test_facts_stand_as_last_described() -> None:
    first, later = (OptimizerFacts("SGD", "SGD", ({"lr": lr},), 2) for lr in (0.1, 0.01))
    model = ModelFacts("net", "Net", (), ())
    loss = LossFacts("net", "MeanBackward0", "", None, None)
    run = Run([Description(0, first), Description(0, model), Description(0, loss)])
    run.add(Description(5, later))
    assert run.optimizers == {"SGD": later}
    assert (run.models, run.losses) == ({"net": model}, {"net": loss})


def test_the_loss_fraction_is_the_recent_mean_over_the_first() -> None:
    values = [8.0, *[2.0] * 5, *[4.0] * 5]
    run = Run(Scalar(i, "loss", value, Site("gen+critic")) for i, value in enumerate(values))
    assert run.loss_fraction("critic") == pytest.approx(3.0 / 8.0)
    assert math.isnan(run.loss_fraction("other"))


# -- Run: loading --------------------------------------------------------------------------------


def test_a_loaded_run_answers_as_the_one_that_grew(tmp_path: Path) -> None:
    broken = TensorStats(2, math.nan, math.nan, 3.0, math.inf, nonfinite=1)
    items: list[Item] = [
        Event(0, EventKind.STARTED, detail={"id": "r1"}),
        *(
            item
            for step in range(5)
            for item in (
                gradient(step, [step, 1.0]),
                Record(step, WEIGHT, Point.GRAD, broken),
                Scalar(step, "loss", math.nan if step == 3 else 1.0 / (step + 1)),
                Event(step, EventKind.MEASURED),
            )
        ),
        Event(5, EventKind.ENDED, detail={"steps": 5, "exit_code": 0}),
    ]
    verdict = Verdict(evaluated=("N001",), not_evaluated=(NotEvaluated("G005", "no probe"),))
    writer = Writer(tmp_path / "run.traindx")
    writer.write(items)
    writer.write_verdict(verdict)
    writer.close()
    grown, loaded = Run(items), Run.load(str(tmp_path / "run.traindx"))
    for quantity in ("grad.rms", "grad.max", "grad.nonfinite", "loss"):
        pairs = [repr([list(s) for s in run.series(quantity)]) for run in (grown, loaded)]
        assert pairs[0] == pairs[1]
    assert (loaded.header, loaded.steps, loaded.measured_steps) == (grown.header, 5, 5)
    assert (loaded.verdict, loaded.path) == (verdict, tmp_path / "run.traindx")


# -- Run: many steps -----------------------------------------------------------------------------


def long_stream(start: int, stop: int, every: int = 8) -> Iterator[Item]:
    """A loss at every step, and some steps measured, after which there is an evaluation."""
    for step in range(start, stop):
        yield Scalar(step, "loss", 1.0 / (step + 1), Site("net"))
        if step % every == 0:
            yield gradient(step, [1.0, step])
            yield Scalar(step, "update.ratio", 1.0 / (step + 1), WEIGHT)
            yield Event(step, EventKind.MEASURED)
            yield Event(step, EventKind.EVALUATION, Site("net"), {"training": False})


def held_after(run: Run, steps: range) -> int:
    """Bytes that more is held after these steps, with what rules and reports ask for."""
    before, _ = tracemalloc.get_traced_memory()
    for item in long_stream(steps.start, steps.stop, steps.step):
        run.add(item)
    for quantity in ("grad.rms", "grad.max", "update.ratio", "loss"):
        assert run.series(quantity)
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


def check_memory(first: range, later: range) -> Run:
    run = Run()
    tracemalloc.start()
    try:
        assert held_after(run, first) < 2 * 2**20
        assert held_after(run, later) < 2**18
    finally:
        tracemalloc.stop()
    return run


def test_the_memory_of_a_run_does_not_grow_with_its_steps() -> None:
    run = check_memory(range(0, 6000, 2), range(6000, 16_000, 2))
    assert (run.steps, run.measured_steps) == (16_000, 8000)


@pytest.mark.slow
def test_the_memory_after_a_hundred_thousand_steps_is_that_after_ten_thousand() -> None:
    check_memory(range(0, 10_000, 1), range(10_000, 100_000, 1))


def test_asking_for_what_follows_from_statistics_now_or_later_is_the_same() -> None:
    often, once = Run(), Run()
    for item in long_stream(0, 10_000, every=2):
        often.add(item)
        once.add(item)
        if isinstance(item, Record):
            often.add(item)  # a second micro-batch
            if item.step % 64 == 0:
                often.at("grad.rms", WEIGHT)
                often.series("grad.min")
            once.add(item)
    for quantity in ("grad.rms", "grad.min", "grad.count"):
        one, other = often.at(quantity, WEIGHT), once.at(quantity, WEIGHT)
        assert one is not None
        assert other is not None
        assert list(one) == list(other)
        assert (one.count, one.unchanged_since) == (other.count, other.unchanged_since)
        assert one.last_finite == other.last_finite == 9998
        assert one.count == 5000


@pytest.mark.parametrize("portion", [7, 300, 10**6])
def test_a_long_run_loads_as_it_grew(tmp_path: Path, portion: int) -> None:
    items = [*long_stream(0, 20_000 if portion > 7 else 800)]
    items += [Scalar(40_000 + i, "loss", math.nan, Site("net")) for i in range(50)]
    writer = Writer(tmp_path / "run.traindx", interval=0)
    for start in range(0, len(items), portion):
        writer.write(items[start : start + portion])
    writer.close()
    grown, loaded = Run(items), Run.load(tmp_path / "run.traindx")
    for quantity in ("loss", "update.ratio", "grad.rms", "grad.nonfinite"):
        one, other = grown.series(quantity), loaded.series(quantity)
        assert repr([list(s) for s in one]) == repr([list(s) for s in other])
        assert [s.last_finite for s in one] == [s.last_finite for s in other]
        assert [s.count for s in one] == [s.count for s in other]
    for kind in EventKind:
        assert grown.events(kind) == loaded.events(kind)
        assert grown.num_events(kind) == loaded.num_events(kind)


def test_a_run_counts_what_ceases_to_be_finite() -> None:
    run = Run([Scalar(0, "loss", 1.0, Site("net")), Scalar(0, "lr", math.inf, Site("", "SGD"))])
    assert run.breaks == 0  # a rate ends neither well nor badly
    for step, loss in enumerate((math.nan, math.nan, 1.0, math.inf), start=1):
        run.add(Scalar(step, "loss", loss, Site("net")))
    assert run.breaks == 2
    run.add(Record(4, Site("net", "0.weight"), Point.GRAD, TensorStats(2, 0, 0, 0, 0, nonfinite=1)))
    assert run.breaks == 3
