"""The faults: each is found for what it is, where it is, and its repaired twin is quiet."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from traindx.rules.catalog import catalog

PROGRAMS = sorted(Path(__file__).parents[2].joinpath("zoo", "faults").rglob("*.py"))
LINES = re.compile(
    r"(?P<wrong>\S.*?\.)\n\nexpects: (?P<expects>[A-Z]\d{3})\nplace:(?: (?P<place>\S+))?\n"
    r"source: (?P<source>\S.*)",
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


def watch(program: Path, folder: Path, *arguments: str) -> Watched:
    """Run a program watched, as a careful pipeline would: any finding fails it."""
    document = folder / "diagnosis.json"
    options = ("--quiet", "--runs", folder, "--json", document, "--fail-on", "info")
    command = [sys.executable, "-m", "traindx", "run", *options, program, *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert document.exists(), done.stderr
    diagnosis = json.loads(document.read_text(encoding="utf-8"))
    return Watched(done.returncode, done.stderr, diagnosis)


@cache
def printed(program: Path, *arguments: str) -> str:
    """What a program prints without traindx."""
    command = [sys.executable, program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@each_program
def test_a_program_says_what_is_wrong_with_it(program: Path):
    lines = expected(program)
    assert lines["expects"] in catalog()
    assert "\n\n" not in lines["wrong"]


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
    assert {expected(program)["expects"] for program in PROGRAMS} == passive


@pytest.mark.slow
@each_program
def test_the_fault_is_the_first_thing_found_and_at_its_place(program: Path, tmp_path: Path):
    lines = expected(program)
    watched = watch(program, tmp_path)
    assert watched.first == (lines["expects"], lines["place"], "active"), watched.diagnosis
    assert watched.diagnosis["findings"][0]["caused_by"] == []
    assert watched.diagnosis["run"]["exit_code"] == 0
    assert watched.code == 1


@pytest.mark.slow
@each_program
def test_nothing_is_found_in_the_repaired_twin(program: Path, tmp_path: Path):
    watched = watch(program, tmp_path, "--healthy")
    assert watched.diagnosis["findings"] == []
    assert (watched.code, watched.stderr) == (0, "")


@pytest.mark.slow
@each_program
def test_a_program_repeats_itself_and_its_twin_differs(program: Path):
    again = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert again.stdout == printed(program)
    assert printed(program, "--healthy") != printed(program)
