"""Model, batch and callable loss are found in every program of the zoo."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.preflight import is_found, probed, programs


@pytest.mark.slow
@pytest.mark.parametrize("program", programs(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_case_of_a_program_is_found_and_a_healthy_one_has_no_error(program: Path) -> None:
    document = probed(program, "--quick")
    assert is_found(document), document["stderr"]
    assert not [probe["name"] for probe in document["preflight"]["probes"] if probe["trace"]]
    if program.parent.name == "healthy":
        errors = [found["code"] for found in document["findings"] if found["severity"] == "error"]
        assert errors == []
