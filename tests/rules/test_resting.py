"""When rules are asked: of what lasts, less often where steps are measured one after another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules.recording import Recording, chain
from traindx.findings import Evidence, Severity
from traindx.records import Item
from traindx.rules.catalog import catalog
from traindx.rules.engine import Engine
from traindx.rules.page import entry, markdown
from traindx.rules.rule import Rule, rule
from traindx.run import Run
from traindx.store.reader import Stored
from traindx.store.writer import Writer

ALL = 64
"""Measured steps at the start after which every rule is asked."""
RESTLESS = {
    "E006", "E013", "F001", "F003", "F005", "F006", "G001", "G002", "G011", "N014", "S014",
}  # fmt: skip
"""Rules that a training feeds and that speak of what the next step may take away."""


def noted(asked: list[int], *, lasting: bool, hits: int = 1, quantity: str = "loss") -> Rule:
    """A rule that hits where the last value is 1, and notes the steps at which it is asked."""

    @rule("G900", severity=Severity.ERROR, reads=(quantity,), hits=hits, lasting=lasting)
    def noting(run: Run) -> Iterator[Evidence]:
        """It is noted."""
        asked.append(run.step)
        for series in run.series(quantity):
            if series.last == 1:
                yield Evidence(series.site, series.step, "one", {})

    return noting


def measured(steps: Iterable[int], ones: Iterable[int] = ()) -> Recording:
    """A loss that is 1 at some steps, and 0 at the others."""
    recording, high = Recording(chain(3)), set(ones)
    for step in steps:
        recording.scalar(step, "loss", step in high)
        recording.measured(step)
    return recording


def asked_at(items: Iterable[Item], *, lasting: bool = True) -> list[int]:
    """The steps after which a rule is asked, but for the end."""
    asked: list[int] = []
    Engine([noted(asked, lasting=lasting)]).write([*items])
    return asked


def test_a_rule_of_what_lasts_rests_for_four_steps_once_many_were_measured():
    assert asked_at(measured(range(100)).items) == [*range(ALL), *range(ALL + 3, 100, 4)]


def test_a_rule_of_what_the_next_step_takes_away_is_asked_after_each():
    assert asked_at(measured(range(100)).items, lasting=False) == [*range(100)]


def test_steps_that_are_measured_four_apart_or_more_are_all_looked_at():
    steps = [*range(ALL), *range(70, 200, 4), *range(210, 900, 37)]
    assert asked_at(measured(steps).items) == steps


def test_what_lasts_is_found_and_cleared_though_it_is_not_looked_for_at_each_step():
    for hits in (1, 3):
        engine = Engine([noted([], lasting=True, hits=hits)])
        engine.write(measured(range(200), ones=range(90, 140)).items)
        engine.close()
        (finding,) = engine.verdict.findings
        assert 90 <= finding.first_step < 94
        assert 136 <= finding.last_step < 140
        assert not finding.active
        assert finding.count == 13


def test_what_holds_at_one_step_is_found_by_a_rule_that_does_not_rest():
    for lasting, found in ((False, [81]), (True, [])):
        engine = Engine([noted([], lasting=lasting)])
        engine.write(measured(range(100), ones=[81]).items)
        engine.close()
        assert [it.first_step for it in engine.verdict.findings] == found


def test_what_came_while_it_rested_is_found_at_the_end():
    engine = Engine([noted([], lasting=True)])
    engine.write(measured(range(98), ones=range(96, 98)).items)
    assert engine.verdict.findings == ()
    engine.close()
    assert [it.first_step for it in engine.verdict.findings] == [97]


def test_a_number_that_is_no_longer_finite_ends_the_rest():
    recording = measured(range(90))
    recording.items[-2:] = []
    recording.scalar(89, "loss", math.nan)
    recording.measured(89)
    assert asked_at(recording.items)[-3:] == [83, 87, 89]


def test_a_number_of_a_new_kind_ends_the_rest():
    recording = measured(range(90))
    recording.scalar(89, "lr", 0.1, "SGD", model="")
    recording.items.append(recording.items.pop(-2))
    assert asked_at(recording.items)[-3:] == [83, 87, 89]


def test_one_that_does_not_apply_is_asked_again_whether_it_does():
    asked: list[int] = []

    def early(run: Run) -> str:
        asked.append(run.step)
        return "too early" if run.step < 80 else ""

    @rule("G900", severity=Severity.ERROR, reads=("loss",), applies=early)
    def seldom(run: Run) -> Iterator[Evidence]:
        """It comes late."""
        yield Evidence(run.series("loss")[0].site, run.step, "late", {})

    engine = Engine([seldom])
    engine.write(measured(range(90)).items)
    assert asked == [*range(ALL), 67, 71, 75, 79, 83]
    (finding,) = engine.verdict.findings
    assert (finding.first_step, finding.count) == (83, 7)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=80, max_size=120), st.integers(1, 50))
def test_live_in_portions_and_from_the_file_it_is_asked_at_the_same_steps(
    gaps: list[int], size: int
):
    steps = [sum(gaps[:i]) for i in range(len(gaps))]
    items = measured(steps, ones=steps[70::3]).items
    live: list[int] = []
    engine = Engine([noted(live, lasting=True)])
    for start in range(0, len(items), size):
        engine.write(items[start : start + size])
    assert live == asked_at(items)


def test_from_the_file_it_is_asked_at_the_same_steps(tmp_path: Path):
    recording = measured([*range(90), *range(90, 140, 3), *range(150, 190)], ones=range(100, 160))
    recording.scalar(189, "loss", math.inf)
    recording.items.append(recording.items.pop(-2))
    writer = Writer(tmp_path / "run.traindx")
    writer.write(recording.items)
    writer.close()
    again: list[int] = []
    engine = Engine([noted(again, lasting=True)])
    for stretch in Stored(tmp_path / "run.traindx"):
        engine.replay(stretch)
    assert again == asked_at(recording.items)
    assert again[-1] == 189


def test_the_rules_that_do_not_rest_are_these():
    fed = {code for code, it in catalog().items() if it.source == "passive" and not it.lasting}
    assert fed == RESTLESS


def test_what_is_measured_before_training_needs_no_rest():
    assert not any(it.lasting for it in catalog().values() if it.source != "passive")


def test_its_page_says_that_a_rule_rests():
    for code in ("N001", "F006"):
        it = catalog()[code]
        assert ("rests between neighbouring steps" in markdown(it)) == it.lasting
        assert entry(it)["lasting"] == it.lasting
