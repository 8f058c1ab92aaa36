"""Steps that are judged several at a time get the findings they would have got one by one."""

from __future__ import annotations

from tests.rules.test_engine import alarm
from traindx.records import Event, EventKind, Item, Scalar, Site
from traindx.rules.batched import Batched
from traindx.rules.engine import Engine, judge


class Clock:
    """Time as a test tells it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def steps(losses: list[float]) -> list[list[Item]]:
    return [
        [Scalar(step, "loss", loss, Site("net")), Event(step, EventKind.MEASURED)]
        for step, loss in enumerate(losses)
    ]


def test_a_run_judged_in_batches_has_the_findings_of_one_judged_step_by_step():
    written = steps([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    rules = [alarm(hits=2)]
    clock = Clock()
    engine = Engine(rules)
    batched = Batched(engine, patience=2.5, clock=clock)
    for items in written:
        clock.now += 1.0
        batched.write(items)
    batched.close()
    assert engine.verdict.findings
    assert engine.verdict == judge([item for items in written for item in items], rules)


def test_steps_wait_until_the_patience_is_over_or_somebody_asks():
    clock = Clock()
    engine = Engine([])
    batched = Batched(engine, patience=1.0, clock=clock)
    first, second, third = steps([1.0, 2.0, 3.0])
    batched.write(first)
    assert engine.run.step == -1
    clock.now = 1.0
    batched.write(second)
    assert engine.run.step == 1
    batched.write(third)
    assert engine.run.step == 1
    batched.catch_up()
    assert engine.run.step == 2
