"""What happened is counted in full, and of very many events some are kept."""

from __future__ import annotations

import numpy as np

from traindx import events as events_
from traindx.events import Events
from traindx.records import Event, EventKind, Site
from traindx.thinning import Pins


def test_a_few_events_are_all_there() -> None:
    events = Events(Pins())
    happened = [Event(step, EventKind.NOTE, detail={"text": str(step)}) for step in range(1000)]
    for event in happened:
        events.add(event)
    assert events.of(EventKind.NOTE) == happened
    assert (events.count(EventKind.NOTE), events.count(EventKind.ENDED)) == (1000, 0)


def test_of_very_many_the_first_the_last_and_pinned_ones_are_there() -> None:
    pins = Pins()
    events = Events(pins)
    pins.pin("trouble", [5555])
    for step in range(50_000):
        events.add(Event(step, EventKind.MEASURED))
        assert len(events.of(EventKind.MEASURED)) < 2 * events_.MOST
    steps = [event.step for event in events.of(EventKind.MEASURED)]
    assert {0, 5555, 49_999} <= {*steps}
    assert steps == sorted(steps)
    assert events.count(EventKind.MEASURED) == 50_000
    assert events.last_steps(EventKind.MEASURED, 3) == [49_997, 49_998, 49_999]


def test_a_rare_evaluation_is_not_lost_among_those_of_other_models_and_modes() -> None:
    events = Events(Pins())
    for step in range(20_000):
        rare = step in (7000, 7001)
        detail = {"forwards": 1, "training": not rare}
        events.add(Event(step, EventKind.EVALUATION, Site("net"), detail))
        events.add(Event(step, EventKind.EVALUATION, Site("teacher"), {"training": False}))
    kept = events.of(EventKind.EVALUATION)
    rare = [e.step for e in kept if e.site == Site("net") and not e.detail["training"]]
    assert rare == [7000, 7001]
    assert len(kept) < 2 * events_.MOST


def test_skipped_steps_are_known_one_by_one() -> None:
    events = Events(Pins())
    for step in range(0, 30_000, 2000):
        events.add(Event(step, EventKind.AMP_SKIPPED))
        events.add(Event(step + 1, EventKind.AMP_SKIPPED))
    skipped = events.skipped.has(np.arange(30_000)).nonzero()[0].tolist()
    assert skipped == [step + i for step in range(0, 30_000, 2000) for i in (0, 1)]
