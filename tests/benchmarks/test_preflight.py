"""Model, batch and callable loss are found in the healthy programs, and no error in any of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.preflight import is_found, programs
from tests.zoo.forks import Forks

NOT_FOUND = {
    "manual_sgd": "steps no optimizer",
    "vmap_ensemble": "calls its model inside torch.func.vmap alone",
    "reinforce": "makes its loss from a whole game",
    "maml": "calls its model with weights of its own",
}
"""What has no case, and why."""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    opened = Forks()
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("program", programs("healthy"), ids=lambda path: path.stem)
def test_a_case_is_found_and_no_error_is_told(forks: Forks, program: Path, tmp_path: Path) -> None:
    file = tmp_path / "diagnosis.json"
    options = ("--quick", "--runs", tmp_path / "runs", "--json", file)
    ended = forks.run(tmp_path, "preflight", *options, program, watched=True)
    assert "Traceback" not in ended.stderr
    document = json.loads(file.read_text(encoding="utf-8")) if ended.code in (0, 1) else {}
    assert is_found(document) == (program.stem not in NOT_FOUND), ended.stderr
    errors = [found for found in document.get("findings", ()) if found["severity"] == "error"]
    assert errors == []
