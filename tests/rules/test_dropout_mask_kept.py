"""E018: a dropout whose mask is made once."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.facts import Json
from traindx.findings import Severity


def test_fires_where_the_same_units_are_dropped_in_every_sample():
    run = Probing().number("probe.unexplained_mode_gap", 0.5)
    run.seen("mode-gap", "block.drop", kind="Drop", gap=0.5, mask=0.46)
    (finding,) = run.findings("E018")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "block.drop")
    assert finding.evidence.message == (
        "`block.drop` (Drop) sets the same 46% of its units to 0 in training, in every sample and "
        "whatever the random numbers, and none of them in evaluation"
    )


@pytest.mark.parametrize("detail", [{}, {"mask": 0.01}])
def test_silent_of_other_gaps_and_of_hardly_any_units(detail: dict[str, Json]):
    run = Probing().number("probe.unexplained_mode_gap", 0.5)
    assert not run.seen("mode-gap", "drop", kind="Drop", gap=0.5, **detail).findings("E018")


def test_silent_where_the_modes_agree():
    assert not Probing().number("probe.unexplained_mode_gap", 1e-7).findings("E018")
