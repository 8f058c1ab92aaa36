"""S013: what is frozen, and what is only meant to be."""

from __future__ import annotations

import pytest

from tests.rules.recording import Recording, chain
from traindx.findings import Severity


def run_of(quantity: str, *values: float) -> Recording:
    recording = Recording(chain(2))
    for step, value in enumerate(values):
        recording.scalar(step, quantity, value, "1")
        recording.measured(step)
    return recording


def test_fires_when_a_module_is_frozen_by_an_attribute():
    (finding,) = run_of("freeze.ignored", 4, 4).findings("S013")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "1")
    assert finding.first_step == 1
    assert "says that `1` is frozen, but 4 parameters" in finding.evidence.message
    assert finding.evidence.fix == "1.requires_grad_(False)"


def test_fires_when_a_new_last_layer_is_frozen():
    (finding,) = run_of("freeze.fresh", 1, 1).findings("S013")
    assert finding.evidence.site == ("net", "1")
    assert finding.evidence.fix.startswith("1.requires_grad_(True)")


@pytest.mark.parametrize("quantity", ["freeze.ignored", "freeze.fresh"])
def test_silent_after_one_look(quantity: str):
    assert run_of(quantity, 1).findings("S013") == ()


def test_silent_of_a_frozen_layer_that_is_not_new():
    assert run_of("freeze.fresh", 0, 0, 0).findings("S013") == ()


def test_clears_once_the_last_layer_is_another():
    (finding,) = run_of("freeze.fresh", 1, 1, 0).findings("S013")
    assert not finding.active
