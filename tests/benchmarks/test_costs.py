import math
from pathlib import Path

import pytest

from benchmarks.costs.measure import Ratio, Trial, Turn, cost, in_turns
from benchmarks.costs.peers import CHOICES, installed
from benchmarks.costs.programs import PROGRAMS, find
from benchmarks.costs.settings import Choice, Setting, step
from benchmarks.costs.table import markdown, plain
from benchmarks.costs.turns import Clock, Ending, FailedError, Runner, Step
from benchmarks.overhead import verdict


def ending(measured: set[int] | None = None, every: int = 1) -> Ending:
    return Ending(measured, every, 0.0, 0, 0)


def blocks(*, slow: float = 1.0, measured: set[int], dearer: float) -> list[Turn]:
    """Ten blocks of ten steps at 1.1 times the bare step, measured ones `dearer` times."""
    turns: list[Turn] = []
    for i in range(10):
        pace = slow if i == 4 else 1.0
        numbers = range(10 * i, 10 * i + 10)
        taken = [pace * (dearer if number in measured else 1.1) for number in numbers]
        turns.append(
            Turn(10 * i, [Step(time, 2 * time) for time in taken], [Step(pace, pace)] * 20)
        )
    return turns


def test_measured_steps_count_as_often_as_they_come_in_the_long_run() -> None:
    found = cost(Trial(blocks(measured={35, 67}, dearer=3.0), ending({35, 67}, 32)))
    assert found is not None
    assert found.unmeasured == pytest.approx(1.1)
    assert found.measured == pytest.approx(3.0)
    assert found.cpu.middle == pytest.approx(1.1 * 31 / 32 + 3.0 / 32)
    assert found.quiet == pytest.approx(found.cpu.middle)
    assert found.wall.middle == pytest.approx(2 * found.cpu.middle)
    assert found.measured_us == pytest.approx(2e6)


def test_a_machine_slow_for_a_while_slows_the_bare_steps_beside_too() -> None:
    calm = cost(Trial(blocks(measured=set(), dearer=1.0), ending(set(), 32)))
    slow = cost(Trial(blocks(slow=5.0, measured=set(), dearer=1.0), ending(set(), 32)))
    assert calm is not None
    assert slow is not None
    assert slow.cpu.middle == pytest.approx(calm.cpu.middle) == pytest.approx(1.1)


def test_a_setting_that_measures_all_steps_is_made_of_them_without_the_first_ones() -> None:
    turns = blocks(measured=set(range(10)), dearer=50.0)
    found = cost(Trial(turns, ending()))
    assert found is not None
    assert found.unmeasured is None
    assert found.cpu.middle == pytest.approx(1.1)
    assert found.total > 5


def test_a_setting_that_failed_has_no_cost() -> None:
    assert cost(Trial(failed="no")) is None
    assert cost(Trial([], ending())) is None


def test_the_clock_stands_still_while_others_have_their_turn() -> None:
    now = 100.0
    clock = Clock(lambda: now)
    before = clock()
    clock.stop()
    now = 150.0
    clock.go_on()
    now = 151.0
    assert clock() - before == 1.0


@pytest.mark.parametrize("name", [*PROGRAMS, "tiny", "chain-10"])
def test_every_program_takes_a_step(name: str, tmp_path: Path) -> None:
    training = find(name).make()
    step(training, Setting(training, tmp_path))
    assert all(param.grad is not None for param in training.model.parameters())


@pytest.mark.parametrize("name", ["floor", "every", "default", "trap-nan"])
def test_a_setting_leaves_the_parameters_as_they_are_bare(name: str, tmp_path: Path) -> None:
    trained = []
    for choice in ("bare", name):
        training = find("chain-10").make()
        attached = CHOICES[choice].attach(training, tmp_path)
        for _ in range(3):
            step(training, attached)
        attached.finish()
        trained.append([param.detach().clone() for param in training.model.parameters()])
    assert all(one.equal(other) for one, other in zip(*trained, strict=True))


def test_what_is_not_installed_is_told() -> None:
    assert not installed(Choice("", Setting, "no_such_module_anywhere"))
    assert installed(CHOICES["anomaly"])


def test_tables_line_up() -> None:
    head, rows = ("a", "b"), [["one", "1"], ["three", "22"]]
    assert plain(head, rows) == "a       b\none     1\nthree  22"
    assert markdown(head, rows).splitlines()[1] == "| --- | ---: |"


@pytest.mark.slow
def test_settings_train_in_turns_in_processes_of_their_own() -> None:
    trials = in_turns("tiny", ["again", "every"], turns=3, seconds=0.02)
    found = cost(trials["every"])
    assert found is not None
    assert found.every == 1
    assert found.ending.measured == set(range(found.steps))
    assert math.isfinite(found.cpu.middle)
    assert found.ending.written > 0


@pytest.mark.slow
def test_a_setting_that_cannot_begin_says_why() -> None:
    with pytest.raises(FailedError, match="KeyError"):
        Runner("tiny", "no such setting")


@pytest.mark.parametrize(
    ("ratio", "word"),
    [
        (Ratio(1.01, 1.00, 1.02), "kept"),
        (Ratio(1.09, 1.05, 1.20), "missed"),
        (Ratio(1.01, 0.99, 1.06), "undecided"),
        (Ratio(1.01, 1.01, 1.01), "undecided"),
        (Ratio(math.nan, math.nan, math.nan), "undecided"),
    ],
)
def test_an_aim_is_kept_or_missed_only_where_the_turns_agree(ratio: Ratio, word: str) -> None:
    assert verdict(ratio, 1.03) == f"1.030 {word}"
