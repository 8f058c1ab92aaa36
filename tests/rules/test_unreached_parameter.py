"""S012 unreached-parameter: parameters behind a cut."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.findings import Severity


@pytest.mark.parametrize(
    ("effect", "severity", "words"),
    [
        (0.02, Severity.ERROR, "changes the loss by 0.02 of its value"),
        (0.0, Severity.INFO, "does not change the loss"),
    ],
)
def test_fires_for_parameters_without_gradient(effect: float, severity: Severity, words: str):
    run = Probing().number("probe.unreached", 4)
    run.seen("parameters-reached", "enc.2", parameters=["enc.0.weight"], count=4, effect=effect)
    (finding,) = run.findings("S012")
    assert finding.severity is severity
    assert words in finding.evidence.message


def test_silent_where_all_are_reached():
    assert not Probing().number("probe.unreached", 0).findings("S012")


def test_silent_for_a_module_that_is_never_called():
    run = Probing().number("probe.unreached", 2).seen("modules-called", "head", parameters=2)
    assert not run.findings("S012")
