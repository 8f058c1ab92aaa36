"""A NaN born on an unmeasured step: no wrong origin is named; with `--trap-nan` the true one is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FAULTS = Path(__file__).parents[2] / "zoo" / "faults"


def judged(program: str, folder: Path, *options: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """What the program prints, its first finding, and the run."""
    document = folder / "diagnosis.json"
    words = ("--quiet", "--runs", folder, "--json", document, *options)
    command = [sys.executable, "-m", "traindx", "run", *words, FAULTS / program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    diagnosis = json.loads(document.read_text(encoding="utf-8"))
    return done.stdout, diagnosis["findings"][0], diagnosis["run"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "place", "step", "words"),
    [
        ("log_of_silence.py", "loudness", 57, "`log` in `loudness` makes the first value"),
        ("missing_readings.py", "", 46, "holds 3 values that are not finite, the first at index"),
        ("distance_of_twins.py", "distance", 40, "the gradient of `sqrt` in `distance`"),
        ("rate_overflow.py", "rate", 6, "`exp` in `rate` makes the first value"),
    ],
)
def test_the_true_module_is_named_with_the_trap_and_the_script_prints_the_same(
    program: str, place: str, step: int, words: str, tmp_path: Path
):
    bare = subprocess.run([sys.executable, FAULTS / program], capture_output=True, text=True)
    printed, finding, _ = judged(program, tmp_path, "--trap-nan")
    assert printed == bare.stdout
    assert (finding["code"], finding["site"], finding["first_step"]) == ("F006", place, step)
    assert words in finding["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", ["log_of_silence.py", "missing_readings.py", "distance_of_twins.py"]
)
def test_no_layer_is_named_without_the_trap_if_the_step_was_not_measured(
    program: str, tmp_path: Path
):
    _, finding, run = judged(program, tmp_path)
    assert run["measured_steps"] < run["steps"]
    assert (finding["code"], finding["site"]) == ("F006", "")
    assert "traindx run --trap-nan" in finding["fix"]
