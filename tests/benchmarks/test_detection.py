"""How the findings of the zoo are counted: halves, scores, bounds, and results after a stop."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import pytest

from benchmarks import detection
from benchmarks.detecting import programs as zoo
from benchmarks.detecting.bounds import Rate, rate
from benchmarks.detecting.programs import HALVES, Program, program_of, programs, split_hash
from benchmarks.detecting.report import MARK, Report, write
from benchmarks.detecting.roc import curve
from benchmarks.detecting.running import Job, Outcome, jobs, line, outcomes, read
from benchmarks.detecting.scoring import Judged, alarms, is_at, merged, score, views
from benchmarks.detecting.tables import by_program, misses, of_rules, rules
from traindx.rules.catalog import catalog

HERE = Path("x.py")


def fault(name: str = "faults/a", *, expects: str = "G003", place: str = "", kind: str = "loop"):
    return Program(name, HERE, "d", expects, place, kind)


def finding(code: str, severity: str = "error", **changes: Any) -> dict[str, Any]:
    plain = {"status": "active", "model": "net", "site": "", "layers": [], "caused_by": []}
    return {"code": code, "severity": severity, "first_step": 3, "id": 1, **plain, **changes}


def outcome(program: Program, *found: dict[str, Any], mode: str = "run", **changes: Any) -> Outcome:
    settings = {"source": "s", "seed": 0, "twin": False, "seconds": 1.0, "steps": 9, **changes}
    return Outcome(program.name, program.digest, mode=mode, findings=list(found), **settings)


# -- programs --------------------------------------------------------------------------------------


def test_the_lines_of_a_fault_are_read(tmp_path: Path):
    path = tmp_path / "faults" / "a.py"
    path.parent.mkdir()
    text = '"""Wrong.\n\nexpects: G003\nplace:\nsource: of mine\nkind: gradient\nshows: x\n"""\n'
    path.write_text(text, encoding="utf-8")
    program = program_of(path, tmp_path)
    assert (program.expects, program.place, program.kind) == ("G003", "", "gradient")
    assert program.digest == hashlib.sha256(text.encode()).hexdigest()


def test_a_fault_without_its_lines_is_refused(tmp_path: Path):
    path = tmp_path / "faults" / "a.py"
    path.parent.mkdir()
    path.write_text('"""Wrong."""\n', encoding="utf-8")
    with pytest.raises(ValueError, match="needs the lines"):
        program_of(path, tmp_path)


def test_the_half_of_a_program_is_the_parity_of_its_names_hash():
    for program in programs():
        stem = program.path.stem
        even = int(hashlib.sha256(stem.encode()).hexdigest(), 16) % 2 == 0
        seen = stem in zoo.LOOKED_AT
        assert program.half == ("calibration" if even or seen else "test")
        assert not (even and seen)
    assert {program.path.stem for program in programs()} >= zoo.LOOKED_AT
    assert {program.half for program in programs()} == set(HALVES)


def test_the_hash_of_the_split_changes_with_a_program_and_not_with_their_order():
    one, other = fault("faults/a"), fault("faults/b")
    changed = Program("faults/b", HERE, "e", "G003")
    assert split_hash([one, other]) == split_hash([other, one])
    assert split_hash([one, other]) != split_hash([one, changed])
    assert split_hash([one, other]) != split_hash([one])


def test_every_fault_and_its_twin_and_every_healthy_program_is_run_in_both_modes():
    program, healthy = fault(), Program("healthy/b", HERE, "d")
    made = jobs([program, healthy], range(2), ("run", "preflight"))
    assert len({job.key for job in made}) == len(made) == 2 * (2 + 1) * 2
    assert [job.seed for job in made] == [0] * 6 + [1] * 6


# -- scores ----------------------------------------------------------------------------------------


def test_a_finding_of_another_cause_before_it_makes_it_found_but_not_first():
    told = score(fault(), [finding("O001"), finding("G003", first_step=7)])
    assert (told.found, told.first, told.step, told.lead) == (True, False, 7, "O001")


def test_what_a_probe_finds_is_found_at_step_zero():
    assert score(fault(), [finding("G003", first_step=-1)]).step == 0


def test_what_another_finding_explains_is_no_root():
    told = score(fault(), [finding("G001", caused_by=[2]), finding("G003", id=2)])
    assert (told.first, told.lead) == (True, "G003")


def test_a_finding_that_was_cleared_is_found_and_not_first():
    told = score(fault(), [finding("G003", status="cleared")])
    assert (told.found, told.first, told.lead) == (True, False, "")


def test_a_code_of_the_same_cause_is_as_right():
    assert score(fault(expects="G003"), [finding("S012")]).first
    assert not score(fault(expects="G003"), [finding("O011")]).found


@pytest.mark.parametrize(
    ("site", "layers", "right"),
    [
        ("encoder", [], True),
        ("encoder.weight", [], True),
        ("head", ["encoder", "head"], True),
        ("encoder.0.weight", [], False),
        ("head", [], False),
        ("", [], False),
    ],
)
def test_a_place_is_the_site_a_parameter_of_it_or_one_of_the_layers(
    site: str, layers: list[str], right: bool
):
    assert is_at("encoder", finding("G003", site=site, layers=layers)) is right


def test_a_program_without_a_place_has_none_to_miss():
    assert score(fault(place=""), [finding("G003")]).placed is None
    assert score(fault(place="head"), []).placed is False


def test_errors_and_warnings_are_alarms_and_information_is_none():
    told = alarms([finding("O001", "warning"), finding("S011", "info"), finding("G003")])
    assert (told.errors, told.warnings, told.infos) == (("G003",), ("O001",), ("S011",))


def test_two_verdicts_become_one_with_the_most_severe_active_first():
    parts = ([finding("S011", "info")], [finding("N001", status="cleared"), finding("O001")])
    assert [found["code"] for found in merged(parts)] == ["O001", "S011", "N001"]


@pytest.mark.parametrize("severity", ["error", "warning", "info"])
def test_a_finding_of_one_view_explains_those_of_the_other_unless_it_is_milder(severity: str):
    assert "G006" in catalog()["O001"].explained_by
    told = {f["code"]: f for f in merged(([finding("O001")], [finding("G006", severity)]))}
    assert bool(told["O001"]["caused_by"]) is (severity == "error")


@pytest.mark.parametrize(
    ("severity", "first"), [("error", "G006"), ("warning", "G006"), ("info", "O001")]
)
def test_what_may_be_the_cause_is_told_first_unless_it_is_information(severity: str, first: str):
    assert merged(([finding("O001")], [finding("G006", severity)]))[0]["code"] == first


@pytest.mark.parametrize("status", ["active", "cleared"])
def test_what_has_cleared_is_told_before_nothing_that_is_there(status: str):
    told = merged(([finding("O001")], [finding("G006", "warning", status=status)]))
    assert (told[0]["code"] == "G006") is (status == "active")


@pytest.mark.parametrize(("severity", "first"), [("error", "S001"), ("warning", "N005")])
def test_a_proof_comes_before_what_was_measured_and_a_forecast_after(severity: str, first: str):
    parts = [finding("S001", severity, first_step=-1)], [finding("N005", severity)]
    assert merged(parts)[0]["code"] == first


def test_a_warning_keeps_the_place_that_its_own_view_gave_it():
    warning, error = finding("G006", "warning"), finding("O001")
    assert [f["code"] for f in merged(([warning, error],))] == ["G006", "O001"]
    assert [f["code"] for f in merged(([error, warning],))] == ["O001", "G006"]


def test_together_needs_both_modes_and_a_failed_one_adds_nothing():
    one, other = fault("faults/a"), fault("faults/b")
    made = [
        outcome(one, finding("G003")),
        outcome(one, mode="preflight", failure="no model"),
        outcome(other, finding("G003")),
    ]
    judged, failed = views([one, other], made, "together")
    assert [run.program.name for run in judged] == ["faults/a"]
    assert judged[0].score.first
    assert [part.mode for part in failed] == ["preflight"]
    assert len(views([one, other], made, "run")[0]) == 2


def test_a_run_of_a_program_that_has_changed_does_not_count():
    changed = Program("faults/a", HERE, "e", "G003")
    assert views([changed], [outcome(fault("faults/a"))], "run") == ([], [])


# -- rates -----------------------------------------------------------------------------------------


def test_the_bound_of_what_never_happened_is_the_rule_of_three_made_exact():
    assert Rate(0, 150).highest() == pytest.approx(1 - 0.05 ** (1 / 150))
    assert Rate(0, 150).lowest() == 0.0
    assert Rate(7, 7).lowest() == pytest.approx(0.05 ** (1 / 7))
    assert Rate(7, 7).highest() == 1.0


def test_bounds_are_where_the_binomial_tails_are_two_and_a_half_percent():
    from scipy.stats import binom

    low, high = Rate(3, 40).bounds()
    assert binom.sf(2, 40, low) == pytest.approx(0.025)
    assert binom.cdf(3, 40, high) == pytest.approx(0.025)


def test_a_rate_of_nothing_says_nothing():
    assert str(rate([])) == "-"


def test_a_program_is_found_with_every_seed_and_accused_with_any():
    program = fault()
    runs = [
        Judged(program, 0, False, (finding("G003"),)),
        Judged(program, 1, False, ()),
    ]
    assert by_program(runs, lambda run: run.score.found, every=True) == Rate(0, 1)
    assert by_program(runs, lambda run: bool(run.alarms.errors), every=False) == Rate(1, 1)


def test_a_rule_is_told_what_it_found_and_whom_it_accused():
    program = fault()
    runs = [
        Judged(program, 0, False, (finding("G003"),)),
        Judged(program, 0, True, (finding("O001", "warning"),)),
        Judged(Program("healthy/b", HERE, "d"), 0, False, ()),
    ]
    told = of_rules(runs, ["G003", "O001"])
    assert (told["G003"]["found"], told["G003"]["runs"], told["G003"]["false_alarms"]) == (1, 1, 0)
    assert (told["O001"]["runs"], told["O001"]["false_alarms"]) == (0, 1)
    assert told["O001"]["healthy_runs"] == 2


def test_a_rule_that_said_nothing_and_had_nothing_to_say_is_only_named():
    told = rules(of_rules([Judged(fault(), 0, False, (finding("G003"),))], ["G003", "O001"]))
    assert "| G003 | 1 | 1/1 = 100%" in told
    assert told.endswith("No fault, and no word to a healthy run: O001.\n")


def test_a_miss_is_listed_with_what_was_said_instead():
    runs = [Judged(fault("faults/a"), 0, False, (finding("O001"),))]
    assert "| a | G003 | 0/1 | - | O001 (1) |" in misses(runs)
    assert "| a |" not in misses([Judged(fault("faults/a"), 0, False, (finding("G003"),))])


# -- results and report ----------------------------------------------------------------------------


def test_a_results_file_is_read_back_without_a_line_that_was_cut_off(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    made = outcome(fault(), finding("G003"))
    file.write_text(line(made) + line(made)[:40], encoding="utf-8")
    assert read(file) == [made]
    assert read(tmp_path / "none.jsonl") == []


def in_halves() -> tuple[Program, Program]:
    """A program of each half."""
    named = [fault(f"faults/p{i}") for i in range(20)]
    first, second = (next(p for p in named if p.half == half) for half in HALVES)
    return first, second


def test_the_test_half_is_told_in_totals_unless_it_is_revealed():
    first, second = in_halves()
    made = [outcome(p, mode=mode) for p in (first, second) for mode in ("run", "preflight")]
    closed = Report([first, second], made, reveal=False, command="c").text()
    open_ = Report([first, second], made, reveal=True, command="c").text()
    row = f"| {second.name.removeprefix('faults/')} |"
    assert row not in closed
    assert row in open_
    assert f"| {first.name.removeprefix('faults/')} |" in closed
    assert "| together | all | test | 1 | 0/1" in closed
    assert split_hash([first, second])[:16] in closed


def test_the_page_is_written_behind_its_marker_and_again(tmp_path: Path):
    page, data = tmp_path / "page.md", tmp_path / "rules.json"
    page.write_text(f"# Mine\n\n{MARK}\nold\n", encoding="utf-8")
    first, _ = in_halves()
    report = Report([first], [outcome(first), outcome(first, mode="preflight")], True, "c")
    write(report, "", page, data)
    once = page.read_text(encoding="utf-8")
    write(report, "", page, data)
    assert page.read_text(encoding="utf-8") == once
    assert once.startswith(f"# Mine\n\n{MARK}\n\n`c`: ")
    assert "old" not in once
    page.write_text("# Mine\n", encoding="utf-8")
    with pytest.raises(ValueError, match="needs the line"):
        write(report, "", page, data)


def test_what_is_known_is_told_without_a_run_and_the_last_of_a_run_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "results.jsonl"
    program = next(p for p in programs() if p.name == "faults/no_zero_grad")
    made = [
        outcome(program, mode="run", failure="broken"),
        outcome(program, finding("G006", site="SGD"), mode="run"),
        outcome(program, mode="preflight"),
    ]
    file.write_text("".join(map(line, made)), encoding="utf-8")
    words = ["--only", "no_zero_grad", "--jobs", "0", "--reveal", "--results", str(file)]
    assert detection.main(words) == 0
    told = capsys.readouterr().out
    assert "2 runs with seeds 0, 0 of them without a verdict" in told
    assert f"| together | all | {program.half} | 1 | 1/1 = 100%" in told


def test_programs_are_chosen_by_name_and_half():
    first, second = in_halves()
    options = argparse.Namespace(only=None, half="test")
    assert [detection.is_chosen(p, options) for p in (first, second)] == [False, True]
    options = argparse.Namespace(only=[first.name], half=None)
    assert [detection.is_chosen(p, options) for p in (first, second)] == [True, False]


@pytest.mark.slow
def test_a_worker_finds_what_the_command_line_does_and_the_twin_is_quiet(tmp_path: Path):
    program = next(p for p in programs() if p.name == "faults/no_zero_grad")
    wanted = [Job(program, 0, twin, "run") for twin in (False, True)]
    made = dict(outcomes(wanted, 2, "s", keep=tmp_path))
    faulty, twin = (made[job] for job in wanted)
    assert (faulty.failure, twin.failure, twin.findings) == ("", "", [])
    assert score(program, faulty.findings).first
    assert faulty.steps > 50
    assert Path(faulty.store).parent == tmp_path


@pytest.mark.slow
def test_a_threshold_that_is_moved_far_enough_finds_nothing_more(tmp_path: Path):
    program = next(p for p in programs() if p.name == "faults/batches_of_two")
    wanted = [Job(program, 0, twin, "run") for twin in (False, True)]
    made = [outcome for _, outcome in outcomes(wanted, 2, "s", keep=tmp_path)]
    points = curve("N003", "size", [program], made)
    assert [point.found.hits for point in points] == sorted(point.found.hits for point in points)
    assert (points[0].found, points[-1].found) == (Rate(0, 1), Rate(1, 1))
    (default,) = (point for point in points if point.is_default)
    assert (default.value, default.found, default.accused) == (16, Rate(1, 1), Rate(0, 1))


@pytest.mark.slow
def test_a_program_that_fails_is_an_outcome_without_a_verdict(tmp_path: Path):
    path = tmp_path / "broken.py"
    path.write_text("print('nothing to train')\n", encoding="utf-8")
    ((_, made),) = outcomes([Job(Program("b", path, "d"), 0, False, "preflight")], 1, "s")
    assert made.failure
    assert made.findings == []


def test_the_split_of_the_zoo_has_faults_of_both_groups_in_both_halves():
    groups = {(program.half, program.group) for program in zoo.programs() if program.is_fault}
    assert len(groups) == 4
