"""E016 dropout-not-scaled: what is dropped is not made up for."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.findings import Severity


@pytest.mark.parametrize(("sure", "severity"), [(True, Severity.ERROR), (False, Severity.INFO)])
def test_fires_for_a_mask_that_is_not_made_up_for(sure: bool, severity: Severity):
    run = Probing().number("probe.unexplained_mode_gap", 0.4)
    detail = {"kind": "Drop", "gap": 0.4, "dropped": 0.25, "tolerance": 1e-4}
    run.seen("mode-gap", "drop", unscaled=True, sure=sure, **detail)  # pyright: ignore
    (finding,) = run.findings("E016")
    assert finding.severity is severity
    assert "`drop` (Drop) drops 25% in training" in finding.evidence.message


def test_silent_where_what_is_dropped_is_made_up_for():
    assert not Probing().number("probe.unexplained_mode_gap", 1e-7).findings("E016")


def test_silent_of_another_gap():
    run = Probing().number("probe.unexplained_mode_gap", 0.4)
    assert not run.seen("mode-gap", "scale", kind="Scale", gap=0.4).findings("E016")
