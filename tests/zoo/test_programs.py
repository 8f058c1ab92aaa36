"""The healthy programs: each learns what its docstring promises, and traindx finds nothing.

A program that did not learn would be no measure of false alarms.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = sorted(Path(__file__).parents[2].joinpath("zoo", "healthy").glob("*.py"))
EXPECTED = re.compile(r"^Expected: (?P<metric>.+?) (?P<sign>[<>]) (?P<bound>\d+\.\d+)", re.M)

each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)


def output_of(program: Path, seed: int, *watched: str) -> str:
    """What a program prints, run bare or by the words given before it."""
    command = [sys.executable, *watched, program, "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def watched(program: Path, seed: int, folder: Path) -> tuple[str, dict[str, Any]]:
    """What a program prints while it is watched, and the diagnosis."""
    document = folder / "diagnosis.json"
    options = ("-m", "traindx", "run", "--quiet", "--runs", str(folder), "--json", str(document))
    output = output_of(program, seed, *options)
    return output, json.loads(document.read_text(encoding="utf-8"))


def assert_healthy(program: Path, seed: int, folder: Path) -> None:
    """It learns what it promises, and nothing is found, not even in passing."""
    output, diagnosis = watched(program, seed, folder)
    assert_promise_kept(program, output)
    assert diagnosis["run"]["measured_steps"] >= 10
    assert diagnosis["findings"] == []


def assert_promise_kept(program: Path, output: str) -> None:
    docstring = ast.get_docstring(ast.parse(program.read_text(encoding="utf-8")))
    promise = EXPECTED.search(docstring or "")
    assert promise, "the docstring needs a line `Expected: METRIC > BOUND`"
    last_line = output.splitlines()[-1]
    printed = re.fullmatch(rf"{re.escape(promise['metric'])}[ :=]+(\d+\.\d+)", last_line)
    assert printed, f"the last line should be the promised metric, not {last_line!r}"
    value, bound = float(printed[1]), float(promise["bound"])
    assert value > bound if promise["sign"] == ">" else value < bound, last_line


def test_there_are_at_least_the_twelve_kinds_of_program():
    assert {program.stem for program in PROGRAMS} >= {
        "mlp",
        "conv_bn",
        "resnet",
        "lstm",
        "gru_regression",
        "prenorm_transformer",
        "autoencoder",
        "gan",
        "finetune_frozen_backbone",
        "gradient_accumulation",
        "embedding_classifier",
        "amp_bf16",
    }


@each_program
def test_a_program_takes_nothing_but_data_from_traindx(program: Path):
    imports = re.findall(r"^\s*(?:from|import)\s+(traindx\S*)", program.read_text("utf-8"), re.M)
    assert set(imports) <= {"traindx.datasets"}


@each_program
def test_a_program_learns_what_it_promises_and_nothing_is_found(program: Path, tmp_path: Path):
    assert_healthy(program, 0, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@each_program
def test_nothing_is_found_with_other_seeds_either(program: Path, seed: int, tmp_path: Path):
    assert_healthy(program, seed, tmp_path)


@pytest.mark.slow
@each_program
def test_a_program_prints_the_same_with_and_without_traindx(program: Path, tmp_path: Path):
    assert output_of(program, seed=3) == watched(program, 3, tmp_path)[0]
