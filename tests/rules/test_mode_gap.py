"""E015 mode-gap: what differs between training and evaluation besides noise."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.findings import Severity


@pytest.mark.parametrize(("inner", "severity"), [(True, Severity.WARNING), (False, Severity.INFO)])
def test_fires_for_a_gap_that_noise_does_not_explain(inner: bool, severity: Severity):
    run = Probing().number("probe.unexplained_mode_gap", 0.5)
    run.seen("mode-gap", "block.scale", kind="Scale", gap=0.5, tolerance=1e-4, inner=inner)
    (finding,) = run.findings("E015")
    assert finding.severity is severity
    assert "it begins in `block.scale` (Scale)" in finding.evidence.message


def test_silent_where_the_modes_agree():
    assert not Probing().number("probe.unexplained_mode_gap", 1e-7).findings("E015")


def test_silent_of_a_dropout_that_is_not_made_up_for():
    run = Probing().number("probe.unexplained_mode_gap", 0.5)
    assert not run.seen("mode-gap", "drop", kind="Drop", gap=0.5, unscaled=True).findings("E015")


def test_silent_of_a_model_that_is_trained_in_evaluation():
    assert Probing().why_not("E015") == "needs preflight"


def test_silent_of_a_mask_that_is_kept():
    run = Probing().number("probe.unexplained_mode_gap", 0.5)
    assert not run.seen("mode-gap", "drop", kind="Drop", gap=0.5, mask=0.4).findings("E015")
