"""S011 undone-bias: a bias that is subtracted again."""

from __future__ import annotations

from tests.rules.before_training import Probing
from traindx.findings import Severity


def test_fires_for_a_bias_that_is_subtracted_again():
    run = Probing().number("probe.undone_biases", 2)
    run.seen("undone-biases", "conv1", layers=["conv1", "conv2"], count=2, norm="bn1", elements=24)
    (finding,) = run.findings("S011")
    assert finding.severity is Severity.INFO
    assert finding.evidence.message.endswith("first `conv1`, by `bn1`")
    assert finding.evidence.layers == ("conv1", "conv2")


def test_silent_where_there_is_none():
    assert not Probing().number("probe.undone_biases", 0).findings("S011")


def test_silent_without_a_normalization():
    assert Probing().why_not("S011") == "needs preflight"
