"""The faults: each is found for what it is, where it is, and its repaired twin is quiet."""

from __future__ import annotations

import ast
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.zoo.forks import Forks
from tests.zoo.not_found import NOT_FOUND
from traindx.rules.catalog import catalog

PROGRAMS = sorted(Path(__file__).parents[2].joinpath("zoo", "faults").rglob("*.py"))
FOUND = [program for program in PROGRAMS if program.stem not in NOT_FOUND]
MISSED = [program for program in PROGRAMS if program.stem in NOT_FOUND]
KINDS = {
    "normalization", "mode", "loss-pairing", "preprocessing", "nonlinearity", "loop", "schedule",
    "checkpoint", "optimizer", "precision", "data", "init", "gradient", "architecture",
}  # fmt: skip
LINES = re.compile(
    r"(?P<wrong>\S.*?\.)\n\nexpects: (?P<expects>[A-Z]\d{3})\nplace:(?: (?P<place>\S+))?\n"
    r"source: (?P<source>\S.*)\nkind: (?P<kind>\S+)\nshows: "
    r"(?:final (?P<number>\S.*) (?P<better>higher|lower)|provable: (?P<proof>\S.*))",
    re.DOTALL,
)

each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)


@dataclass(frozen=True)
class Watched:
    """How a watched program ended, and the diagnosis."""

    code: int
    stderr: str
    diagnosis: dict[str, Any]

    @property
    def first(self) -> tuple[str, str, str] | None:
        """Code, place and status of the first finding."""
        found = self.diagnosis["findings"]
        return (found[0]["code"], found[0]["site"], found[0]["status"]) if found else None


def expected(program: Path) -> dict[str, str]:
    """What the lines at the top of a program say."""
    docstring = ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or ""
    lines = LINES.fullmatch(docstring)
    assert lines, f"{program.name}: its docstring needs the lines that zoo/README.md shows"
    return {name: text or "" for name, text in lines.groupdict().items()}


def watch(forks: Forks, program: Path, folder: Path, *arguments: str) -> Watched:
    """Run a program watched, as a careful pipeline would: any finding fails it."""
    document = folder / "diagnosis.json"
    options = ("run", "--quiet", "--runs", folder, "--json", document, "--fail-on", "info")
    ended = forks.run(folder, *options, program, *arguments, watched=True)
    assert document.exists(), ended.stderr
    diagnosis = json.loads(document.read_text(encoding="utf-8"))
    return Watched(ended.code, ended.stderr, diagnosis)


def printed(forks: Forks, program: Path, folder: Path, *arguments: str) -> str:
    """What a program prints without traindx."""
    ended = forks.run(folder, program, *arguments)
    assert (ended.code, ended.stderr) == (0, "")
    return ended.stdout


def final(output: str, name: str) -> float:
    """The number in the last line a program prints."""
    number = re.fullmatch(rf"final {re.escape(name)} (\S+)", output.splitlines()[-1])
    assert number, f"the last line should be `final {name} NUMBER`"
    return float(number[1])


@each_program
def test_a_program_says_what_is_wrong_with_it(program: Path):
    lines = expected(program)
    assert lines["expects"] in catalog() or program in MISSED
    assert lines["kind"] in KINDS
    assert "\n\n" not in lines["wrong"]


def test_what_is_not_found_is_listed_by_its_name():
    assert {program.stem for program in MISSED} == NOT_FOUND


@each_program
def test_a_program_takes_nothing_but_data_from_traindx(program: Path):
    imports = re.findall(r"^\s*(?:from|import)\s+(traindx\S*)", program.read_text("utf-8"), re.M)
    assert set(imports) <= {"traindx.datasets"}


@each_program
def test_a_program_is_repaired_in_one_place(program: Path):
    text = program.read_text(encoding="utf-8")
    assert text.count('"--healthy"') == text.count("args.healthy") == 1


def test_every_rule_of_a_training_is_expected_by_some_program():
    passive = {code for code, rule in catalog().items() if rule.source == "passive"}
    assert passive - {expected(program)["expects"] for program in PROGRAMS} == set()


@pytest.mark.slow
@pytest.mark.parametrize("program", FOUND, ids=lambda path: path.stem)
def test_the_fault_is_the_first_thing_found_and_at_its_place(
    program: Path, forks: Forks, tmp_path: Path
):
    lines = expected(program)
    watched = watch(forks, program, tmp_path)
    assert watched.first == (lines["expects"], lines["place"], "active"), watched.diagnosis
    assert watched.diagnosis["findings"][0]["caused_by"] == []
    assert watched.diagnosis["run"]["exit_code"] == 0
    assert watched.code == 1


@pytest.mark.slow
@pytest.mark.parametrize("program", MISSED, ids=lambda path: path.stem)
def test_a_fault_that_is_listed_as_not_found_is_not(program: Path, forks: Forks, tmp_path: Path):
    lines = expected(program)
    watched = watch(forks, program, tmp_path)
    assert watched.first != (lines["expects"], lines["place"], "active")
    assert watched.diagnosis["run"]["exit_code"] == 0


@pytest.mark.slow
@each_program
def test_nothing_is_found_in_the_repaired_twin(program: Path, forks: Forks, tmp_path: Path):
    watched = watch(forks, program, tmp_path, "--healthy")
    assert watched.diagnosis["findings"] == []
    assert (watched.code, watched.stderr) == (0, "")


@pytest.mark.slow
@each_program
def test_a_program_repeats_itself_and_its_twin_is_better(
    program: Path, forks: Forks, tmp_path: Path
):
    faulty, healthy = (printed(forks, program, tmp_path, *a) for a in ((), ("--healthy",)))
    assert printed(forks, program, tmp_path) == faulty
    assert healthy != faulty
    lines = expected(program)
    if lines["number"]:
        bad, good = final(faulty, lines["number"]), final(healthy, lines["number"])
        better = good > bad if lines["better"] == "higher" else good < bad
        assert better or (math.isnan(bad) and math.isfinite(good))
