"""S002 init-symmetry: units that stay alike."""

from __future__ import annotations

from tests.rules.before_training import Probing


def test_fires_for_units_that_stay_alike():
    run = Probing().number("probe.alike_layers", 2)
    run.seen("initialization-symmetry", "0", params=["0.weight", "2.weight"], count=2, units=32)
    (finding,) = run.findings("S002")
    assert finding.evidence.message.startswith("all 32 units of `0.weight` are alike")
    assert finding.evidence.layers == ("0", "2")


def test_silent_where_all_units_differ():
    assert not Probing().number("probe.alike_layers", 0).findings("S002")


def test_silent_without_a_loss_to_train_by():
    assert Probing().why_not("S002") == "needs preflight"
