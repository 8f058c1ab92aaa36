"""L017 target-in-input: the target is a feature, or the element that was just read."""

from __future__ import annotations

from tests.rules.before_training import Probing
from traindx.findings import Severity


def probed(copies: int) -> Probing:
    return Probing().number("probe.target_copies", copies)


def test_fires_for_a_target_that_is_not_shifted():
    (finding,) = probed(1).seen("target-in-input", what="element", steps=16).findings("L017")
    assert finding.severity is Severity.ERROR
    assert "the element that net has just read" in finding.evidence.message
    assert "text[:, 1:]" in finding.evidence.fix


def test_warns_of_a_feature_that_is_the_target():
    (finding,) = probed(1).seen("target-in-input", what="feature", feature=3).findings("L017")
    assert finding.severity is Severity.WARNING
    assert "feature 3 of what net is given" in finding.evidence.message


def test_silent_where_none_was_seen():
    assert not probed(0).findings("L017")


def test_silent_for_what_another_probe_has_seen():
    probing = probed(0).seen("sequence-leaks", what="element", steps=16)
    assert not probing.findings("L017")
