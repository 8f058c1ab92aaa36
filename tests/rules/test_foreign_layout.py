"""E019: weights in the order of another framework."""

from __future__ import annotations

from tests.rules.before_training import Probing
from traindx.findings import Severity


def reread(loss: float) -> Probing:
    run = Probing().number("probe.reread_loss", loss)
    return run.seen(
        "ported-weights",
        "body.0",
        kind="transposed",
        order="",
        layers=["body.0", "body.2"],
        loss=loss,
        before=1.6,
    )


def test_fires_where_another_order_fits():
    (finding,) = reread(0.01).findings("E019")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "body.0")
    assert finding.evidence.message == (
        "before training the loss of net is 1.60 of that of a guess, and with its square matrices "
        "transposed 0.01 (threshold 0.5), first `body.0`"
    )
    assert finding.evidence.layers == ("body.0", "body.2")


def test_silent_where_no_order_fits():
    assert not reread(0.9).findings("E019")


def test_silent_where_the_model_fits_as_it_is():
    assert not Probing().number("probe.reread_loss", 0.9).findings("E019")
