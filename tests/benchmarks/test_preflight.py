"""Model, batch and callable loss are found in programs of the zoo, and no probe fails in any."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.detecting.programs import Program
from benchmarks.detecting.programs import programs as of_zoo
from benchmarks.preflight import has_error, is_found, unsound
from tests.zoo.forks import Forks

NOT_FOUND = {
    "manual_sgd": "steps no optimizer",
    "vmap_ensemble": "calls its model inside torch.func.vmap alone",
    "maml": "calls its model with weights of its own",
}
"""What has no case, and why."""
EVERY = 6
"""Of the faults of the calibration half, each of so many is tried."""
CALIBRATION = [one for one in of_zoo() if one.is_fault and one.half == "calibration"]
HEALTHY = [one for one in of_zoo() if not one.is_fault]


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    opened = Forks()
    yield opened
    opened.close()


def probed(forks: Forks, program: Program, folder: Path) -> dict[str, Any]:
    """The document of a quick preflight; empty, with what was said, if nothing was found."""
    file = folder / "diagnosis.json"
    options = ("--quick", "--runs", folder / "runs", "--json", file)
    ended = forks.run(folder, "preflight", *options, program.path, watched=True)
    assert "Traceback" not in ended.stderr
    document = json.loads(file.read_text(encoding="utf-8")) if ended.code in (0, 1) else {}
    return {**document, "stderr": ended.stderr}


def named(program: Program) -> str:
    return program.path.stem


@pytest.mark.slow
@pytest.mark.parametrize("program", HEALTHY, ids=named)
def test_a_case_is_found_no_probe_fails_and_no_error_is_told(
    forks: Forks, program: Program, tmp_path: Path
) -> None:
    document = probed(forks, program, tmp_path)
    assert is_found(document) == (named(program) not in NOT_FOUND), document["stderr"]
    assert unsound(document) == []
    assert not has_error(document)


@pytest.mark.slow
@pytest.mark.parametrize("program", CALIBRATION[::EVERY], ids=named)
def test_the_case_of_a_fault_is_found_and_no_probe_fails(
    forks: Forks, program: Program, tmp_path: Path
) -> None:
    document = probed(forks, program, tmp_path)
    assert is_found(document), document["stderr"]
    assert unsound(document) == []
