"""When to measure: a ladder that only a budget may thin, by a clock that tests hold in hand."""

from __future__ import annotations

import itertools
import math
import random

import pytest
import torch

from tests.capture.watched import mlp, train, watched
from traindx.capture.cadence import EXEMPT, GRACE, LEAST_PART, Cadence
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
        if measured and cadence.adapt(step):
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


def test_the_interval_doubles_after_every_1024_measured_steps_whatever_the_clock():
    cadence, changed = run_cadence(0.0, 1_000_000)
    intervals = [32, 64, 128, 256]  # 1,024 times each of them
    assert len(changed) == 4
    assert cadence.every == 512
    ends = [sum(1024 * every for every in intervals[: i + 1]) for i in range(4)]
    assert changed == pytest.approx(ends, rel=0.02)
    assert cadence.adapt(1_000_000) == ""


def test_a_thinned_ladder_leaves_no_period_out_of_sight():
    cadence, _ = run_cadence(0.0, 40_000)
    assert cadence.every == 64
    for period in (2, 3, 5, 8, 16, 64):
        seen = {step % period for step in range(40_000, 240_000) if cadence.due(step)}
        assert seen == set(range(period))


@pytest.mark.parametrize("every", [None, 1, 7])
def test_the_next_step_due_is_the_first_one_after(every):
    cadence = Cadence(every, clock=Clock())
    due = [step for step in range(2000) if cadence.due(step)]
    for step in range(1900):
        assert cadence.next_due(step) == next(other for other in due if other > step)


class Training:
    """Steps by a clock in hand: how long they take, and what measuring adds to one.

    Args:
        cost: What measuring adds, in steps.
        budget: The budget.
        noise: Standard deviation of the logarithm of a step's duration, and of the cost.
        drift: How many times as long steps take in the end.
        bursts: How often something else holds a step up, for up to five steps' time.
        heavy: How much more every fourth measured step costs.
        warming: How much more measuring costs in the first hundred steps.
        listening: What listening takes of every step.
        saving: What saving and judging take after a measured one, in steps; of every sixteenth ten
            times as much.
        together: Measured steps that are saved and judged together.
        base: Seconds of a step.
    """

    def __init__(
        self,
        cost: float,
        budget: float,
        *,
        noise: float = 0.0,
        drift: float = 1.0,
        bursts: float = 0.0,
        heavy: float = 1.0,
        warming: float = 1.0,
        listening: float = 0.0,
        saving: float = 0.0,
        together: float = 1,
        base: float = 1.0,
    ) -> None:
        self.cost, self.budget, self.noise, self.drift = cost, budget, noise, drift
        self.bursts, self.heavy, self.warming = bursts, heavy, warming
        self.clock = Clock()
        self.cadence = Cadence(budget=budget, clock=self.clock)
        self.listening, self.saving, self.base = listening, saving, base
        self.together, self.unsaved = together, 0.0
        self.random = random.Random(0)
        self.spent = self.total = 0.0
        self.measured = self.exempt = 0

    def train(self, steps: int) -> Training:
        due = self.cadence.due(0)
        for step in range(steps):
            self._step(step, self.base * self.drift ** (step / steps), due)
            due = self.cadence.due(step + 1) and self.cadence.affords(step + 1)
        return self

    def _step(self, step: int, base: float, due: bool) -> None:
        extra = self._extra(step, base) if due else 0.0
        seconds = extra + base * math.exp(self.random.gauss(0, self.noise))
        if self.random.random() < self.bursts:
            seconds += 5 * base * self.random.random()
        self.clock.now += seconds
        if step == self.cadence.since:
            self.spent = self.total = 0.0  # what was before is exempt
        if step >= EXEMPT:
            self.spent, self.total = self.spent + extra, self.total + seconds
        self.cadence.step_ended(measured=due, step=step)
        if self.listening:
            self.cadence.spending.listening = self.listening * base
        if due:
            self.measured += 1
            self.exempt += self.cadence.since is None
            self._save(step, base)
            self.cadence.adapt(step)
            self.cadence.skip_time()

    def _save(self, step: int, base: float) -> None:
        self.unsaved += self.saving * base * (1 if self.measured % 16 else 10)
        if self.measured % self.together:
            return
        seconds, self.unsaved = self.unsaved, 0.0
        self.clock.now += seconds
        self.cadence.spending.follow(seconds, int(self.together))
        if step >= EXEMPT:
            self.spent += seconds
            self.total += seconds

    def _extra(self, step: int, base: float) -> float:
        extra = self.cost * base * math.exp(self.random.gauss(0, self.noise))
        extra *= self.warming if step < 100 else 1.0
        return extra * (self.heavy if self.measured % 4 == 0 else 1.0)

    @property
    def share(self) -> float:
        """What measuring took since the budget is enforced, in budgets."""
        return self.spent / self.total / self.budget

    @property
    def whole(self) -> float:
        """The same with what listening took."""
        return self.share + self.listening * (1 - self.spent / self.total) / self.budget


MOODS: dict[str, dict[str, float]] = {
    "calm": {},
    "noisy": {"noise": 0.4},
    "slower and slower": {"drift": 4.0},
    "faster and faster": {"drift": 0.5},
    "in bursts": {"bursts": 0.1, "noise": 0.2},
    "heavy at times": {"heavy": 5.0},
    "warming": {"warming": 4.0},
    "all at once": {"noise": 0.2, "drift": 2.0, "bursts": 0.03, "heavy": 5.0},
}


@pytest.mark.parametrize("mood", MOODS)
@pytest.mark.parametrize("budget", [0.01, 0.03, 0.1])
def test_a_budget_is_kept_within_a_factor_of_1_3_from_a_thousand_steps_on(mood, budget):
    for cost in (0.1, 0.3, 1.0, 3.0, 10.0, 50.0):
        for steps in (1000, 3000, 10_000):
            training = Training(cost, budget, **MOODS[mood]).train(steps)
            assert training.share <= 1.3, (cost, steps)


@pytest.mark.parametrize("mood", MOODS)
@pytest.mark.parametrize("budget", [0.01, 0.03, 0.1])
def test_a_ladder_that_was_thinned_still_spends_a_quarter_of_its_budget(mood, budget):
    for cost in (0.1, 0.3, 1.0, 3.0, 10.0, 50.0):
        training = Training(cost, budget, **MOODS[mood]).train(20_000)
        if training.cadence.every > 32:
            assert training.share >= 0.25, cost


def test_what_was_spent_is_known_to_a_tenth_in_a_calm_run():
    for cost in (0.3, 3.0, 30.0):
        training = Training(cost, 0.03, noise=0.1).train(20_000)
        known = training.cadence.kept()
        assert known["budget"] == 0.03
        assert known["budget_since"] == training.cadence.since
        assert known["budget_fraction"] == pytest.approx(training.spent / training.total, rel=0.1)


def test_a_run_too_short_for_the_budget_does_not_claim_to_have_kept_it():
    assert Training(1.0, 0.03).train(199).cadence.kept() == {}


@pytest.mark.parametrize("mood", MOODS)
@pytest.mark.parametrize("budget", [0.01, 0.03, 0.1])
def test_what_listening_takes_is_taken_off_the_budget(mood, budget):
    for part in (0.1, 0.4, 0.7):
        for cost in (0.3, 1.0, 10.0):
            for steps in (1000, 3000, 10_000):
                options = {**MOODS[mood], "listening": part * budget}
                training = Training(cost, budget, **options).train(steps)
                assert training.whole <= 1.3, (part, cost, steps)


@pytest.mark.parametrize("mood", MOODS)
@pytest.mark.parametrize("budget", [0.01, 0.03, 0.1])
@pytest.mark.parametrize("together", [1, 5])
def test_what_saving_and_judging_take_is_covered_by_the_budget(mood, budget, together):
    for saving in (0.1, 0.5, 2.0):
        for cost in (0.3, 1.0, 10.0):
            options = {**MOODS[mood], "saving": saving, "listening": 0.2 * budget}
            training = Training(cost, budget, together=together, **options).train(10_000)
            assert training.whole <= 1.3, (saving, cost)


@pytest.mark.parametrize("together", [1, 5])
def test_a_commit_now_and_then_does_not_thin_the_ladder_by_its_own(together):
    training = Training(0.3, 0.03, saving=0.02, together=together).train(20_000)
    assert training.cadence.every == 32
    assert training.share <= 1.0


@pytest.mark.parametrize("listening", [0.0301, 0.05, 0.5])
def test_where_listening_takes_the_whole_budget_a_quarter_of_it_is_still_for_measuring(listening):
    training = Training(1.0, 0.03, listening=listening, base=1e-3).train(60_000)
    assert LEAST_PART / 2 <= training.share <= LEAST_PART  # an interval doubles
    assert training.cadence.kept()["budget_fraction"] > listening


def test_as_long_as_it_is_not_known_what_listening_takes_nothing_is_taken_off():
    unknown, known = (Training(1.0, 0.03, listening=part) for part in (0.0, 0.015))
    assert unknown.train(5000).share > known.train(5000).share
    assert unknown.cadence.spending.left == 0.03
    assert known.cadence.spending.left == pytest.approx(0.015)


@pytest.mark.parametrize("base", [1e-4, 1e-3, 4e-3])
def test_the_first_quarter_of_a_second_of_measuring_is_not_refused(base):
    """Measured steps of a tiny model, at most one of which is beyond it."""
    cost = 5.0  # 5 in 32: five times the budget
    training = Training(cost, 0.03, listening=0.05, base=base).train(round(8 / cost / base))
    assert training.exempt == pytest.approx(GRACE / cost / base + 3, abs=1)  # three that warm up
    assert training.cadence.since is not None
    assert training.cadence.since >= 32 * (training.exempt - 10)


def test_a_run_that_has_measured_for_less_than_that_keeps_to_the_plain_ladder():
    training = Training(5.0, 0.03, listening=0.05, base=1e-3)
    training.train(1280)  # 49 measured: the first three tell nothing, and the others 0.23 s
    assert (training.measured, training.cadence.every, training.cadence.refused) == (49, 32, 0)
    assert training.cadence.kept() == {}
    assert training.cadence.spending.spent < GRACE


def test_a_quarter_of_a_second_of_measuring_is_not_enough_before_step_200():
    cadence, changed = run_cadence(4.0, 199)
    assert cadence.spending.spent > 20 * GRACE
    assert (changed, cadence.kept()) == ([], {})
    since = Training(4.0, 0.03).train(260).cadence.since
    assert since is not None
    assert 200 <= since < 232  # the first one due


def test_a_given_interval_never_changes():
    cadence, changed = run_cadence(40.0, 1000, every=4)
    assert (cadence.every, changed) == (4, [])
    assert cadence.kept() == {}  # and has no budget


def test_a_change_of_the_ladder_is_an_event_of_the_run_whose_end_tells_of_its_budget(monkeypatch):
    clock = Clock()

    class Slow(torch.nn.Linear):
        """Its parameters take a while to look at, and everything else no time."""

        def named_parameters(self, *args, **kwargs):
            clock.now += 0.05
            return super().named_parameters(*args, **kwargs)

    ticks = itertools.count(step=500_000)  # ns
    monkeypatch.setattr("traindx.capture.quiet._now", lambda: next(ticks))
    with watched(every=None, clock=clock) as recording:
        net = Slow(6, 3)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(260):
            clock.now += 0.1
            train(net, steps=1, optimizer=optimizer)
    (change, *_) = recording.run.events(EventKind.CADENCE)
    assert change.step >= 200
    assert "budget of 3%" in str(change.detail["reason"])
    header = recording.header
    assert header["overhead_fraction"] > 0.03
    moments, calls = 4 * 500e-6, 1e-6
    assert header["listening_fraction"] == pytest.approx((moments + calls) / 0.1)
    assert header["budget_since"] in range(200, 232)
    assert header["budget_fraction"] > 0.02


def test_each_call_of_a_module_is_listening(monkeypatch):
    clock = Clock()
    ticks = itertools.count(step=1000)  # ns
    monkeypatch.setattr("traindx.capture.quiet._now", lambda: next(ticks))
    with watched(every=20, clock=clock) as recording:
        net = torch.nn.Sequential(*[torch.nn.Identity() for _ in range(30)], torch.nn.Linear(6, 3))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(60):
            clock.now += 1e-3
            train(net, steps=1, optimizer=optimizer)
    moments, calls = 4 * 1e-6, 32 * 1e-6
    assert recording.header["listening_fraction"] == pytest.approx((moments + calls) / 1e-3)


def test_time_between_steps_that_is_not_training_is_not_counted():
    clock = Clock()
    cadence = Cadence(clock=clock)
    cadence.skip_time()
    clock.now = 2.0
    assert cadence.step_ended(measured=True, step=0) == 2.0
