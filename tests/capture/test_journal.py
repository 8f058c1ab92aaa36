"""How items reach the sinks: in their order, several steps at one go, and none lost or twice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from tests.capture.devices import PretendedHost
from tests.rules.test_engine import alarm
from traindx.capture.journal import Journal
from traindx.capture.transfer import Host, Part, Portion, TorchHost, Unread
from traindx.records import Event, EventKind, Item, Scalar, Sink, Site
from traindx.rules.engine import Engine, judge


class Clock:
    """Time as a test tells it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Kept:
    """A sink that keeps the steps complete; it may fail or be interrupted at one of them."""

    def __init__(self, fails_at: int = -1) -> None:
        self.steps: list[int] = []
        self.fails_at = fails_at

    def write(self, items: Sequence[Item]) -> None:
        for item in items:
            if item.step == self.fails_at:
                self.fails_at = -1
                raise KeyboardInterrupt
            if isinstance(item, Event):
                self.steps.append(item.step)

    def close(self) -> None:
        pass


def journal(sink: Sink, clock: Clock, patience: float, host: Host | None = None) -> Journal:
    return Journal([sink], clock, lambda _: None, host or TorchHost(), patience=patience)


def step_of(number: int, loss: float | torch.Tensor, made: list[int] | None = None) -> list[Part]:
    def items(numbers: list[float], _lists: object) -> list[Item]:
        if made is not None:
            made.append(number)
        return [Scalar(number, "loss", numbers[0], Site("net"))]

    return [Unread([loss], [], items), Event(number, EventKind.MEASURED)]


def test_a_run_judged_several_steps_at_a_time_has_the_findings_of_one_judged_step_by_step():
    losses = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    clock, rules = Clock(), [alarm(hits=2)]
    engine = Engine(rules)
    writes = journal(engine, clock, 2.5)
    for step, loss in enumerate(losses):
        clock.now += 1.0
        writes.write(step_of(step, loss), measured=True)
    writes.close(len(losses))
    engine.close()
    items = [item for step, loss in enumerate(losses) for item in _made(step_of(step, loss))]
    assert engine.verdict.findings
    assert engine.verdict == judge(items, rules)


def _made(parts: list[Part]) -> list[Item]:
    return Portion(parts, TorchHost()).items()


def test_steps_wait_unmade_until_the_patience_is_over_or_somebody_asks():
    clock, kept, made = Clock(), Kept(), list[int]()
    writes = journal(kept, clock, 1.0)
    counts: list[int] = []
    for step, now in enumerate((0.1, 0.9, 1.0, 1.9)):
        clock.now = now
        counts.append(writes.write(step_of(step, 0.5, made), measured=True))
        assert made == kept.steps == ([] if step < 2 else [0, 1, 2])
    assert counts == [0, 0, 3, 0]
    assert writes.hand_on() == 1
    assert kept.steps == [0, 1, 2, 3]


def test_of_steps_that_wait_long_the_items_are_made_a_few_at_a_time():
    clock, kept, made = Clock(), Kept(), list[int]()
    writes = journal(kept, clock, 1.0)
    counts = [writes.write(step_of(step, 0.5, made), measured=True) for step in range(10)]
    assert counts == [0, 0, 0, 0, 0, 0, 0, 8, 0, 0]
    assert (made, kept.steps) == ([*range(8)], [])
    assert writes.hand_on() == 10
    assert made == kept.steps == [*range(10)]


def test_what_waits_is_overdue_a_second_after_it_was_taken():
    clock, kept = Clock(), Kept()
    writes = journal(kept, clock, 0.25)
    clock.now = 0.2
    writes.write(step_of(0, 0.5), measured=True)
    assert (kept.steps, writes.overdue_at) == ([], 1.2)
    clock.now = 1.2
    writes.write([])
    assert kept.steps == [0]


def test_numbers_on_a_device_are_read_a_step_later_however_long_their_items_wait():
    clock, kept, host = Clock(), Kept(), PretendedHost()
    writes = journal(kept, clock, 10.0, host)
    for step in range(4):
        writes.write(step_of(step, torch.tensor(0.5)), measured=True)
        assert len(writes._under_way) == 1
    assert len(host.copies) == 4
    host.fails = True  # what was read before is not lost
    clock.now = 10.0
    assert writes.hand_on() == 3
    assert kept.steps == [0, 1, 2]


@pytest.mark.parametrize("patience", [0.0, 1.0])
def test_who_interrupts_the_writing_loses_a_step_and_has_none_twice(patience: float):
    clock, kept, other = Clock(), Kept(fails_at=1), Kept()
    writes = Journal([kept, other], clock, lambda _: None, TorchHost(), patience=patience)
    interrupted: list[int] = []
    for step in range(4):
        clock.now = 0.4 * step
        try:
            writes.write(step_of(step, 0.5), measured=True)
        except KeyboardInterrupt:
            interrupted.append(step)
    writes.close(4)
    assert interrupted == ([1] if patience == 0.0 else [3])
    assert kept.steps == [0, 2, 3]
    assert other.steps == [0, 1, 2, 3]
