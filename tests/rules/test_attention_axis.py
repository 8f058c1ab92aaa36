"""F012 attention-axis: weights that average over another axis than they sum to 1 along."""

from __future__ import annotations

from tests.rules.before_training import Probing
from traindx.facts import Json
from traindx.findings import Severity


def seen(**detail: Json) -> Probing:
    told: dict[str, Json] = {"kind": "Attention", "axis": 1, "over": 2, "shape": [4, 7, 7]}
    told |= {"lowest": 0.4, "highest": 1.6, **detail}
    run = Probing().number("probe.softmax_off", 0.6)
    return run.seen("softmax-axis", "block.attention", **told)


def test_fires_for_weights_that_sum_to_one_along_another_axis():
    (finding,) = seen().findings("F012")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site.fqn == "block.attention"
    assert "weights of 4x7x7 sum to 1 along axis 1" in finding.evidence.message
    assert "over which they sum to 0.4 up to 1.6" in finding.evidence.message


def test_fires_for_a_softmax_over_a_single_score():
    (finding,) = seen(single=True, shape=[4, 7, 1]).findings("F012")
    assert "softmax over a single score gives weights of 4x7x1" in finding.evidence.message


def test_silent_where_all_weights_sum_to_one():
    assert not Probing().number("probe.softmax_off", 1e-7).findings("F012")


def test_silent_where_weights_sum_to_one_nowhere():
    assert not Probing().number("probe.softmax_off", 0.8).findings("F012")


def test_silent_without_weights():
    assert Probing().why_not("F012") == "needs preflight"
