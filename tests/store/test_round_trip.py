"""What is written is what is read, whatever it is."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from traindx.facts import (
    LossFacts,
    ModelFacts,
    ModuleFacts,
    OptimizerFacts,
    ParamFacts,
    PathFacts,
    TensorFacts,
)
from traindx.findings import (
    Context,
    Evidence,
    Finding,
    NotEvaluated,
    Severity,
    Silenced,
    Verdict,
)
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
    Vector,
)
from traindx.store.reader import read
from traindx.store.writer import Writer

INT64 = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, 2**63 - 1)
REALS = st.floats()
TEXTS = st.text(st.characters(), max_size=12) | st.sampled_from(["'; DROP TABLE scalars; --", "\0"])
SITES = st.builds(Site, TEXTS, TEXTS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OPTIONS = st.dictionaries(TEXTS, JSON, max_size=3)
NAMES = st.lists(TEXTS, max_size=3).map(tuple)
SHAPES = st.lists(st.integers(0), max_size=4).map(tuple)

PATHS = st.builds(PathFacts, st.integers(), st.integers(), st.none() | st.floats())
PARAMS = st.builds(
    ParamFacts, TEXTS, SHAPES, TEXTS, st.booleans(), optimizers=NAMES, path=st.none() | PATHS
)
MODULES = st.builds(
    ModuleFacts, TEXTS, TEXTS, st.none() | st.integers(), st.integers(), options=OPTIONS
)
TENSORS = st.none() | st.builds(
    TensorFacts, SHAPES, TEXTS, TEXTS, st.floats(), st.floats(), st.booleans(), st.booleans()
)
FACTS = (
    st.builds(
        ModelFacts,
        TEXTS,
        TEXTS,
        st.lists(MODULES, max_size=2).map(tuple),
        st.lists(PARAMS, max_size=2).map(tuple),
        compiled=st.booleans(),
    )
    | st.builds(
        OptimizerFacts,
        TEXTS,
        TEXTS,
        st.lists(OPTIONS, max_size=2).map(tuple),
        st.integers(),
        stale=st.lists(SHAPES, max_size=2).map(tuple),
        unheld=NAMES,
    )
    | st.builds(LossFacts, TEXTS, TEXTS, TEXTS, TENSORS, TENSORS)
)
VECTORS = (st.lists(st.floats(width=32), max_size=70) | st.lists(st.floats(), max_size=9)).map(
    tuple
)
STATS = st.builds(TensorStats, COUNTS, REALS, REALS, REALS, REALS, COUNTS, COUNTS, COUNTS)
ITEMS = st.one_of(
    st.builds(Scalar, INT64, TEXTS, REALS, SITES),
    st.builds(Vector, INT64, TEXTS, SITES, VECTORS),
    st.builds(Record, INT64, SITES, st.sampled_from(Point), STATS),
    st.builds(Event, INT64, st.sampled_from(EventKind), SITES, OPTIONS),
    st.builds(Description, INT64, FACTS),
)
NUMBERS = st.dictionaries(TEXTS, st.floats(), max_size=3)
EVIDENCE = st.builds(
    Evidence,
    SITES,
    INT64,
    TEXTS,
    NUMBERS,
    point=st.none() | st.sampled_from(Point),
    cause=TEXTS,
    fix=TEXTS,
    excluded=NAMES,
    series=NAMES,
    severity=st.none() | st.sampled_from(Severity),
    layers=NAMES,
    profiles=NAMES,
)
FINDINGS = st.builds(
    Finding,
    INT64,
    TEXTS,
    TEXTS,
    st.sampled_from(Severity),
    st.booleans(),
    EVIDENCE,
    INT64,
    INT64,
    INT64,
    thresholds=NUMBERS,
    caused_by=SHAPES,
    remedies=NAMES,
)
VERDICTS = st.builds(
    Verdict,
    st.lists(FINDINGS, max_size=2).map(tuple),
    NAMES,
    st.lists(st.builds(NotEvaluated, TEXTS, TEXTS), max_size=2).map(tuple),
    silenced=st.lists(st.builds(Silenced, TEXTS, SITES, TEXTS), max_size=2).map(tuple),
    contexts=st.lists(st.builds(Context, TEXTS, TEXTS, SITES), max_size=2).map(tuple),
)


def there_and_back(
    items: Sequence[Item], verdict: Verdict | None = None
) -> tuple[list[Item], Verdict | None]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.traindx"
        writer = Writer(path)
        writer.write(items)
        if verdict is not None:
            writer.write_verdict(verdict)
        writer.close()
        assert writer.complete
        return read(path)


def is_marker(item: Item, kind: EventKind) -> bool:
    return isinstance(item, Event) and item.kind is kind


@settings(max_examples=80)
@given(st.lists(ITEMS, max_size=30))
def test_any_items_come_back_and_none_else(items: list[Item]) -> None:
    found, verdict = there_and_back(items)
    # Texts, because NaN is not equal to itself.
    assert sorted(map(repr, found)) == sorted(map(repr, items))
    assert verdict is None


@settings(max_examples=40)
@given(st.lists(ITEMS, max_size=30))
def test_items_come_back_in_the_order_a_rule_engine_takes(items: list[Item]) -> None:
    found, _ = there_and_back(items)
    starts = [is_marker(item, EventKind.STARTED) for item in found]
    assert starts == sorted(starts, reverse=True)
    ends = [is_marker(item, EventKind.ENDED) for item in found]
    assert ends == sorted(ends)
    middle = found[sum(starts) : len(found) - sum(ends)]
    for item, after in pairwise(middle):
        assert item.step <= after.step
        if item.step == after.step and is_marker(item, EventKind.MEASURED):
            assert is_marker(after, EventKind.MEASURED)


KINDS = (Event, Description, Scalar, Record, Vector)


def kind_of(item: Item) -> int:
    return KINDS.index(type(item))


@settings(max_examples=40)
@given(st.lists(st.lists(ITEMS, max_size=8), max_size=5))
def test_items_of_a_kind_come_back_in_exactly_the_order_they_were_written_in(
    steps: list[list[Item]],
) -> None:
    special = (EventKind.STARTED, EventKind.ENDED, EventKind.MEASURED)
    items: list[Item] = [Event(0, EventKind.STARTED)]
    for step, of_step in enumerate(steps):
        plain = [
            item for item in of_step if not isinstance(item, Event) or item.kind not in special
        ]
        items += sorted((replace(item, step=step) for item in plain), key=kind_of)
        items.append(Event(step, EventKind.MEASURED))
    items.append(Event(len(steps), EventKind.ENDED))
    found, _ = there_and_back(items)
    assert list(map(repr, found)) == list(map(repr, items))


@settings(max_examples=60)
@given(VERDICTS)
def test_any_verdict_comes_back(verdict: Verdict) -> None:
    _, found = there_and_back([], verdict)
    assert repr(found) == repr(verdict)


def test_half_a_surrogate_pair_in_a_name_comes_back() -> None:
    items = [Scalar(0, "loss", 1.0, Site("\ud800", "b\udfff"))]
    assert there_and_back(items)[0] == items


def stored_scalars(folder: Path, items: Sequence[Item]) -> list[tuple[int, ...]]:
    """Count, and bytes of steps, places and values, of each row of scalars."""
    writer = Writer(folder / "run.traindx")
    writer.write(items)
    writer.close()
    columns = 'count, length(steps), length(places), length("values")'
    with closing(sqlite3.connect(folder / "run.traindx")) as db:
        return db.execute(f"SELECT {columns} FROM scalars").fetchall()


def test_a_commit_of_many_losses_is_one_row_of_a_few_bytes_each(tmp_path: Path) -> None:
    losses = [Scalar(7000 + step, "loss", 1 / 2**step) for step in range(100)]
    assert stored_scalars(tmp_path, losses) == [(100, 100, 100, 400)]


def test_more_items_than_a_row_holds_are_several_rows(tmp_path: Path) -> None:
    losses = [Scalar(step, "loss", step / 3) for step in range(70_000)]
    rows = stored_scalars(tmp_path, losses)
    assert [row[0] for row in rows] == [65_536, 70_000 - 65_536]
    assert read(tmp_path / "run.traindx")[0] == losses


def test_steps_as_far_apart_as_can_be_come_back() -> None:
    items = [Scalar(step, "loss", 1.0) for step in (-(2**63), -1, 0, 2**63 - 1)]
    assert there_and_back(items)[0] == items


def stored_vector(folder: Path, values: tuple[float, ...]) -> tuple[int, int]:
    """What count of numbers and how many bytes the file has of one vector."""
    writer = Writer(folder / "run.traindx")
    writer.write([Vector(0, "norm.batch_mean", Site("net", "bn"), values)])
    writer.close()
    with closing(sqlite3.connect(folder / "run.traindx")) as db:
        return db.execute("SELECT count, length(numbers) FROM vectors").fetchone()


def test_numbers_that_fit_four_bytes_take_four(tmp_path: Path) -> None:
    assert stored_vector(tmp_path, (0.5, -0.0, math.inf, math.nan, 4096.0)) == (5, 20)


def test_numbers_that_do_not_fit_four_bytes_take_eight(tmp_path: Path) -> None:
    assert stored_vector(tmp_path, (0.5, 0.1, 1e300)) == (3, 24)


def test_a_vector_keeps_its_place_among_the_items() -> None:
    place = Site("net", "bn")
    items: list[Item] = [
        Event(0, EventKind.ORIGIN, place, {"phase": "forward", "index": [0, 3]}),
        Scalar(0, "loss", 1.0, Site("net")),
        Record(0, place, Point.INPUT, TensorStats(1, 0.0, 0.0, 0.0, 0.0)),
        Vector(0, "norm.batch_mean", place, (1.0, 2.0)),
        Vector(0, "norm.batch_var", place, ()),
        Event(0, EventKind.MEASURED),
    ]
    assert there_and_back(items)[0] == items
