"""S008 coordinate-check: changes that grow with the width."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.findings import Severity


def look(least: float, *, scaled: bool = False) -> Probing:
    run = Probing().number("probe.width_exponent", least + 0.1, "head")
    return run.seen(
        "coordinate-check",
        "head",
        argument="width",
        widths=[32, 64, 128],
        steps=4,
        exponent=least + 0.1,
        least=least,
        changes=[0.1, 0.2, 0.4],
        layers=[["body", 0.1, 0.0], ["head", least + 0.1, least]],
        scaled=scaled,
        optimizer="Adam",
    )


@pytest.mark.parametrize(("scaled", "severity"), [(False, Severity.INFO), (True, Severity.WARNING)])
def test_fires_for_changes_that_grow(scaled: bool, severity: Severity):
    (finding,) = look(0.9, scaled=scaled).findings("S008")
    assert finding.severity is severity
    told = "grows as width^1.00 (0.1, 0.2, 0.4 at 32, 64, 128), and so it is in 1 of 2 layers"
    assert told in finding.evidence.message
    assert finding.evidence.layers == ("head",)


def test_silent_where_changes_do_not_grow():
    assert not look(0.1).findings("S008")


def test_silent_at_the_threshold():
    assert not look(0.25).findings("S008")


def test_silent_without_widths():
    assert Probing().why_not("S008") == "needs preflight"
