import argparse
import ctypes
import math
import random
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median, stdev

import pytest

from benchmarks.costs import results
from benchmarks.costs.measure import Estimate, Ratio, Spent, cost, midmean, spent, spread
from benchmarks.costs.peers import CHOICES, PEERS, installed
from benchmarks.costs.programs import PROGRAMS, find
from benchmarks.costs.sessions import Block, FailedError, Plan, Session, Step, session
from benchmarks.costs.settings import Choice, Setting, step
from benchmarks.costs.table import markdown, plain

ROOT = Path(__file__).resolve().parents[2]
EVERY_32TH = frozenset({*range(10), 35, 67})
NOTHING = Estimate(0.0, 0.0)


def steps(*times: float) -> list[Step]:
    return [Step(time, 2 * time) for time in times]


def seen(
    watched: list[float],
    *,
    pace: float = 1.0,
    measured: frozenset[int] | None = None,
    every: int = 1,
    since: int | None = None,
    saved: frozenset[int] = frozenset(),
) -> Session:
    """A process whose bare step takes `pace`, and in which all else is as much slower."""
    taken = steps(*(pace * time for time in watched))
    block = Block(taken, measured, every, since=since, saved=saved)
    bare = Block(steps(*[pace] * 20))
    return Session([bare, bare], [block], 0, 0)


def ladder(pace: float = 1.0) -> Session:
    """A hundred steps at 1.1 times the bare one, measured ones at three times."""
    times = [3.0 if number in EVERY_32TH else 1.1 for number in range(100)]
    return seen(times, pace=pace, measured=EVERY_32TH, every=32)


def test_measured_steps_count_as_often_as_they_come_in_the_long_run() -> None:
    found = cost([ladder()], ladder=True)
    assert found.unmeasured == pytest.approx(1.1)
    assert found.measured == pytest.approx(3.0)
    assert found.cpu.middle == pytest.approx(1.1 * 31 / 32 + 3.0 / 32)
    assert found.quiet.middle == found.wall.middle == pytest.approx(found.cpu.middle)


def test_a_process_on_a_slow_machine_is_slow_in_its_bare_steps_too() -> None:
    found = cost([ladder(), ladder(pace=5.0), ladder(pace=0.3)], ladder=True)
    assert found.cpu == pytest.approx(cost([ladder()], ladder=True).cpu)


def test_a_setting_in_which_all_steps_are_alike_is_made_of_them_without_the_first_ones() -> None:
    found = cost([seen([50.0, 50.0, 50.0, *[1.2] * 30])])
    assert found.unmeasured is None
    assert found.cpu.middle == found.measured == pytest.approx(1.2)


def test_steps_that_save_what_others_have_left_are_in_the_quiet_figure_too() -> None:
    saved = frozenset(range(3, 103, 20))
    times = [3.0 if number in saved else 1.2 for number in range(103)]
    assert cost([seen(times, saved=saved)]).quiet.middle == pytest.approx(1.2 * 0.95 + 3.0 * 0.05)
    assert cost([seen(times)]).quiet.middle == pytest.approx(1.2)


def test_where_few_steps_are_measured_those_that_save_count_among_the_others() -> None:
    saved = frozenset(range(11, 100, 10)) - EVERY_32TH
    times = [3.0 if number in EVERY_32TH | saved else 1.1 for number in range(100)]
    found = cost([seen(times, measured=EVERY_32TH, every=32, saved=saved)], ladder=True)
    counted = 100 - 10 - 2
    unmeasured = 1.1 + 1.9 * len(saved) / counted
    assert found.unmeasured == pytest.approx(unmeasured)
    assert found.quiet.middle == pytest.approx(unmeasured * 31 / 32 + 3.0 / 32)


def test_what_the_first_steps_leave_to_be_saved_is_no_part_of_the_long_run() -> None:
    saved = frozenset(range(10, 30))
    times = [3.0 if number in EVERY_32TH | saved else 1.1 for number in range(100)]
    found = cost(
        [seen(times, measured=EVERY_32TH, every=32, saved=saved)],
        ladder=True,
        settles=CHOICES["default"].settles,
    )
    assert found.unmeasured == pytest.approx(1.1)
    assert found.measured == pytest.approx(3.0)


def test_memory_is_told_as_a_part_of_what_bare_training_holds() -> None:
    bare = asdict(cost([replace(seen([1.0] * 9), peak=200 * 2**20)]))
    watched = asdict(cost([replace(seen([1.0] * 9), peak=210 * 2**20)]))
    settings = {"again": {"title": "bare", **bare}, "every": {"title": "watched", **watched}}
    shown = results.of_program({"title": "", "bare": 1.0, "settings": settings}, plain)
    assert "+10 (+5%)" in shown


def test_a_budget_is_spent_by_saving_too() -> None:
    saved = frozenset(range(5, 1000, 20))
    times = [2.0 if number in saved else 1.0 for number in range(1000)]
    found = spent(seen(times, measured=frozenset(), saved=saved, since=200), 0.05, NOTHING)
    assert found.measuring == pytest.approx(0.05)
    assert found.measured == 0


def test_the_spread_is_that_of_the_processes() -> None:
    found = cost([seen([1.0 + 0.1 * i] * 20) for i in range(5)])
    assert found.quiet == pytest.approx((1.2, 1.1, 1.3))
    assert found.processes == pytest.approx([1.0, 1.1, 1.2, 1.3, 1.4])
    assert spread([2.0]) == Ratio(2.0, 2.0, 2.0)


@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_a_budget_is_spent_by_what_measured_steps_take_longer_than_their_neighbours(
    drift: float,
) -> None:
    measured = frozenset(range(0, 1000, 20))
    times = [(1 + drift * number) * (2.0 if number in measured else 1.0) for number in range(1000)]
    found = spent(seen(times, measured=measured, every=20, since=200), 0.05, Estimate(0.01, 0.002))
    assert found.measuring == pytest.approx(0.05, rel=0.1)
    assert found.total == pytest.approx(found.measuring + 0.01)
    assert (found.measured, found.steps) == (40, 800)


def test_a_pause_of_the_machine_is_no_spending() -> None:
    measured = frozenset(range(0, 1000, 20))
    times = [2.0 if number in measured else 1.0 for number in range(1000)]
    times[500] = times[701] = 10_000.0
    found = spent(seen(times, measured=measured, every=20, since=200), 0.05, NOTHING)
    assert found.measuring == pytest.approx(0.05, rel=0.15)


def test_a_budget_under_which_nothing_was_measured_was_not_spent() -> None:
    found = spent(seen([1.0] * 300, measured=frozenset(range(10)), since=200), 0.01, NOTHING)
    assert found.measuring == found.measured == 0


def test_what_is_spent_before_a_budget_is_in_force_does_not_count() -> None:
    measured = frozenset({*range(0, 600, 10), *range(600, 1000, 100)})
    times = [2.0 if number in measured else 1.0 for number in range(1000)]
    found = spent(seen(times, measured=measured, since=600), 0.01, NOTHING)
    assert (found.since, found.measured, found.steps) == (600, 4, 400)
    assert found.measuring == pytest.approx(0.01)
    never = spent(seen(times, measured=measured), 0.01, NOTHING)
    assert (never.since, never.measured, never.steps) == (None, 44, 800)


@pytest.mark.parametrize(
    ("since", "measuring", "said"),
    [(200, 0.01, "yes"), (200, 0.03, "no"), (None, 0.03, "not in force"), (None, 0.01, "yes")],
)
def test_a_budget_is_broken_only_where_it_is_in_force(
    since: int | None, measuring: float, said: str
) -> None:
    assert kept(since, measuring, 0.0) == said


@pytest.mark.parametrize(
    ("since", "measuring", "error", "said"),
    [
        (200, 0.0100, 0.0004, "yes"),
        (200, 0.0100, 0.0006, "undecided"),
        (200, 0.0120, 0.0006, "undecided"),
        (200, 0.0120, 0.0004, "no"),
        (200, 0.0100, math.nan, "undecided"),
        (None, 0.0120, 0.0006, "not in force"),
    ],
)
def test_what_two_standard_errors_may_turn_is_not_decided(
    since: int | None, measuring: float, error: float, said: str
) -> None:
    assert kept(since, measuring, error) == said


def kept(since: int | None, measuring: float, error: float) -> str:
    """What is said of a budget of 1 %, of which listening takes 0.2 %."""
    one = Spent(0.01, since, measuring, 0.002, None, measured=3, steps=100, error=error)
    program = {"title": "net", "bare": 0.001, "settings": {}, "budgets": [asdict(one)]}
    return results.of_program(program, plain).splitlines()[-1].rsplit("  ", 1)[-1]


def test_the_middle_half_of_values_tells_their_mean_and_what_is_beyond_its_error_alone() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert midmean(values).value == midmean([*values[:7], 1e9]).value == 4.5
    assert midmean(values).error == midmean([*values[:7], 1e9]).error > 0
    assert midmean([2.0] * 5) == Estimate(2.0, 0.0)
    assert math.isnan(midmean([2.0]).error)


@pytest.mark.parametrize("outliers", [0, 40])
def test_the_standard_error_is_how_much_the_estimate_varies(outliers: int) -> None:
    generator = random.Random(0)
    found = [
        midmean(
            [generator.gauss(1.0, 0.1) for _ in range(400 - outliers)]
            + [generator.uniform(1.0, 9.0) for _ in range(outliers)]
        )
        for _ in range(300)
    ]
    seen_error = stdev(one.value for one in found)
    assert median(one.error for one in found) == pytest.approx(seen_error, rel=0.15)


def test_short_blocks_in_turns_tell_a_small_difference_and_how_surely() -> None:
    def one(generator: random.Random) -> Session:
        drift = [1 + 0.2 * math.sin(i * math.tau / 60) for i in range(61)]
        noisy = [[pace * generator.gauss(1, 0.03) for _ in range(12)] for pace in drift]
        bare = [Block(steps(*times)) for times in noisy[::2]]
        watched = [Block(steps(*(1.01 * time for time in times))) for times in noisy[1::2]]
        return Session(bare, watched, 0, 0)

    generator = random.Random(1)
    found = [cost([one(generator) for _ in range(3)]).paired for _ in range(60)]
    errors = [one.error for one in found]
    assert median(one.value for one in found) == pytest.approx(1.01, abs=0.0005)
    assert median(errors) == pytest.approx(stdev(one.value for one in found), rel=0.25)
    assert median(errors) < 0.002


@pytest.mark.parametrize("name", [*PROGRAMS, "tiny", "chain-10"])
def test_every_program_takes_a_step(name: str, tmp_path: Path) -> None:
    training = find(name).make()
    step(training, Setting(training, tmp_path))
    assert all(param.grad is not None for param in training.model.parameters())


@pytest.mark.parametrize("name", ["floor", "every", "default", "trap-nan", "anomaly"])
def test_a_setting_leaves_the_parameters_as_they_are_bare(name: str, tmp_path: Path) -> None:
    trained = []
    for choice in ("again", name):
        training = find("chain-10").make()
        for _ in range(2):
            attached = CHOICES[choice].attach(training, tmp_path)
            for _ in range(3):
                step(training, attached)
            attached.finish()
        trained.append([param.detach().clone() for param in training.model.parameters()])
    assert all(one.equal(other) for one, other in zip(*trained, strict=True))


def test_what_is_not_installed_is_told() -> None:
    assert not installed(Choice("", Setting, "no_such_module_anywhere"))
    assert installed(CHOICES["anomaly"])


def test_of_every_peer_it_is_said_what_it_collects() -> None:
    assert all(choice.peer and choice.collects for choice in PEERS.values())


def test_tables_line_up() -> None:
    head, rows = ("a", "b"), [["one", "1"], ["three", "22"]]
    assert plain(head, rows) == "a       b\none     1\nthree  22"
    assert markdown(head, rows).splitlines()[1] == "| --- | ---: |"


def test_a_text_goes_between_the_comments_of_its_name(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x: what follows is written by it -->\nold\n<!-- x: end -->\nb\n")
    for _ in range(2):
        results.insert(r"new \1", page, "x")
    assert page.read_text() == (
        "a\n<!-- x: what follows is written by it -->\n\nnew \\1\n\n<!-- x: end -->\nb\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--markdown", "missing.md"], "cannot read missing.md: "),
        (["--markdown", "."], "cannot read .: "),
        (["--markdown", "README.md"], "README.md must have the lines `<!-- x: what follows"),
        (["--from", "missing.json"], "cannot read missing.json: "),
        (["--from", "README.md"], "README.md is no JSON: "),
        (
            ["--from", "benchmarks/results/detection.json"],
            "benchmarks/results/detection.json was not written by --json",
        ),
    ],
)
def test_a_file_of_no_use_is_refused_before_anything_is_measured(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    results.add_files(parser, "x")
    with pytest.raises(SystemExit) as refused:
        parser.parse_args(words)
    assert refused.value.code == 2
    assert said in capsys.readouterr().err


def test_the_page_on_costs_has_a_place_for_the_tables_of_each_command() -> None:
    page = Path("docs/overhead.md").read_text()
    for name in ("benchmarks/overhead.py", "benchmarks/scaling.py"):
        assert f"<!-- {name}: what follows is written by it -->" in page
        assert f"<!-- {name}: end -->" in page


@pytest.mark.slow
def test_a_setting_trains_in_turns_with_bare_steps_in_a_process_of_its_own() -> None:
    one = session(Plan("tiny", "every", cycles=3, bare=10, steps=20))
    assert [len(block.steps) for block in one.bare] == [10] * 4
    assert [block.measured for block in one.watched] == [frozenset(range(20))] * 3
    assert math.isfinite(cost([one]).cpu.middle)
    assert one.written > 0


TAKEN_AND_GIVEN_BACK = """
import resource, torch
from benchmarks.costs.sessions import keep_memory
keep_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [torch.ones(1 << 22) for _ in range(4)]
    del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(*[faults() for _ in range(4)])
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another C library")
def test_memory_that_a_process_has_once_got_it_does_not_get_again_page_by_page() -> None:
    run = subprocess.run(
        [sys.executable, "-c", TAKEN_AND_GIVEN_BACK],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    first, *_, last = map(int, run.stdout.split())
    assert last < first / 10


@pytest.mark.slow
def test_a_setting_that_cannot_begin_says_why() -> None:
    with pytest.raises(FailedError, match="KeyError"):
        session(Plan("tiny", "no such setting", 1, 1, 1))


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
def test_an_aim_is_kept_or_missed_only_where_the_processes_agree(ratio: Ratio, word: str) -> None:
    assert results.verdict(ratio, 1.03) == f"1.030 {word}"
