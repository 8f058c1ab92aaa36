"""E017 variance-shift: dropout before a batch normalization."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.findings import Severity


def look(shift: float, p: float = 0.6) -> Probing:
    run = Probing().number("probe.variance_shift", shift, "norm")
    return run.seen("variance-shift", "norm", shift=shift, dropout="drop", p=p)


@pytest.mark.parametrize(("shift", "severity"), [(2.5, Severity.WARNING), (1.5, Severity.INFO)])
def test_fires_for_a_variance_that_dropout_adds(shift: float, severity: Severity):
    (finding,) = look(shift).findings("E017")
    assert finding.severity is severity
    assert "with the dropout of `drop` (p = 0.6) `norm` is given" in finding.evidence.message


def test_silent_for_a_little():
    assert not look(1.1).findings("E017")


def test_silent_for_less_variance():
    assert not look(0.9).findings("E017")


def test_a_shift_far_beyond_what_dropout_can_keep_up_is_of_a_new_model_only():
    (finding,) = look(8.8, p=0.2).findings("E017")
    assert finding.severity is Severity.INFO
