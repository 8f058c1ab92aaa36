"""When to measure: a ladder that only a budget may thin, by a clock that tests hold in hand."""

from __future__ import annotations

import pytest
import torch

from tests.capture.watched import mlp, train, watched
from traindx.capture.cadence import Cadence
from traindx.records import EventKind


class Clock:
    """Time as a test tells it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def measured_steps(steps: int, **options) -> list[int]:
    with watched(**options) as recording:
        net = mlp()
        train(net, steps=steps)
    return [event.step for event in recording.run.events(EventKind.MEASURED)]


def test_the_ladder_is_the_first_ten_steps_and_then_one_of_every_thirty_two():
    steps = measured_steps(320, every=None, clock=Clock())
    assert steps[:10] == [*range(10)]
    assert [step // 32 for step in steps[10:]] == [*range(1, 10)]


@pytest.mark.parametrize("period", [2, 3, 4, 5, 7, 8, 16, 32, 64, 100])
def test_no_period_of_the_training_stays_out_of_sight(period):
    cadence = Cadence(clock=Clock())
    seen = {step % period for step in range(100_000) if cadence.due(step)}
    assert seen == set(range(period))


def test_every_n_is_exact():
    assert measured_steps(22, every=7) == [0, 7, 14, 21]
    assert measured_steps(3, every=1) == [0, 1, 2]


def test_a_step_not_due_measures_no_tensor_but_notes_its_loss():
    with watched(every=5) as recording:
        train(mlp(), steps=10)
    assert recording.series("grad.l2", "0.weight").steps.tolist() == [0, 5]
    assert len(recording.values("loss")) == 10


def run_cadence(cost: float, steps: int, *, every: int | None = None) -> tuple[Cadence, list[int]]:
    """Steps of a second each, measured ones `cost` longer; the steps at which it changed."""
    clock = Clock()
    cadence = Cadence(every, budget=0.03, clock=clock)
    changed: list[int] = []
    for step in range(steps):
        measured = cadence.due(step)
        clock.now += 1.0 + cost * measured
        cadence.step_ended(measured=measured, step=step)
        if cadence.adapt(step):
            changed.append(step)
        cadence.skip_time()
    return cadence, changed


def test_a_cheap_measurement_keeps_the_ladder():
    cadence, changed = run_cadence(0.3, 600)  # 0.3 s in 32 s: 0.9 %
    assert changed == []
    assert cadence.every == 32


def test_an_expensive_measurement_thins_the_ladder_to_the_budget_but_not_before_step_200():
    cadence, changed = run_cadence(4.0, 1000)  # 4 s in 32 s: 11 %
    assert changed
    assert min(changed) >= 200
    assert cadence.every == 256  # 4 / (256 + 4) is the first below 3 %
    assert 4 / (cadence.every + 4) <= 0.03 < 4 / (cadence.every / 2 + 4)


def test_the_fraction_is_the_excess_of_measured_steps_over_their_neighbours():
    cadence, _ = run_cadence(0.5, 176)
    measured = sum(map(cadence.due, range(176)))
    total = 173 + 0.5 * (measured - 3)  # the first three steps warm up
    assert cadence.fraction is not None
    assert abs(cadence.fraction - 0.5 * (measured - 3) / total) < 1e-9


def test_a_given_interval_never_changes():
    cadence, changed = run_cadence(40.0, 1000, every=4)
    assert (cadence.every, changed) == (4, [])


def test_a_change_of_the_ladder_is_an_event_of_the_run():
    clock = Clock()

    class Slow(torch.nn.Linear):
        """Its parameters take a second to look at, and everything else no time."""

        def named_parameters(self, *args, **kwargs):
            clock.now += 0.5
            return super().named_parameters(*args, **kwargs)

    with watched(every=None, clock=clock) as recording:
        net = Slow(6, 3)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(260):
            clock.now += 1.0
            train(net, steps=1, optimizer=optimizer)
    (change, *_) = recording.run.events(EventKind.CADENCE)
    assert change.step >= 200
    assert "budget of 3%" in str(change.detail["reason"])
    assert recording.header["overhead_fraction"] > 0.03


def test_time_between_steps_that_is_not_training_is_not_counted():
    clock = Clock()
    cadence = Cadence(clock=clock)
    cadence.skip_time()
    clock.now = 2.0
    assert cadence.step_ended(measured=True, step=0) == 2.0
