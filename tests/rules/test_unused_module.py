"""S005 unused-module: modules that are never called."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.findings import Severity


@pytest.mark.parametrize(("parameters", "severity"), [(2, Severity.WARNING), (0, Severity.INFO)])
def test_fires_for_a_module_that_is_never_called(parameters: int, severity: Severity):
    run = Probing().number("probe.unreached", parameters)
    run.seen("modules-called", "head", kind="Linear", parameters=parameters)
    (finding,) = run.findings("S005")
    assert finding.severity is severity
    assert finding.evidence.message.startswith("`head` (Linear, ")


def test_several_of_a_kind_without_parameters_are_told_once():
    run = Probing().number("probe.unreached", 0)
    run.seen("modules-called", "drop", kind="Dropout", parameters=0, more=11)
    (finding,) = run.findings("S005")
    assert finding.evidence.message.endswith("; so it is with 11 more of this kind")


def test_silent_where_every_module_is_called():
    assert not Probing().number("probe.unreached", 0).findings("S005")


def test_silent_without_a_loss():
    assert Probing().why_not("S005") == "needs preflight"
