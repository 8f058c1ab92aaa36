"""L019 loss-mask: padding that counts, and classes that do not."""

from __future__ import annotations

from tests.rules.probing import Probed
from traindx.findings import Finding, Severity


def padded(counted: float) -> list[Finding]:
    probed = Probed("L019", "loss-mask", padding_counted=counted, classes_left_out=0)
    return probed.seen(what="padding", share=0.4).findings()


def test_warns_of_padding_that_counts():
    (finding,) = padded(1.0)
    assert finding.severity is Severity.WARNING
    assert finding.evidence.message == (
        "40% of the positions of the batch are padding, and 100% of those inside it have a "
        "gradient: they count in the loss of net"
    )


def test_silent_of_padding_that_does_not():
    assert not padded(0.0)


def test_fires_for_a_class_without_a_gradient():
    probed = Probed("L019", "loss-mask", classes_left_out=1)
    (finding,) = probed.seen(what="class", label=3, samples=9).findings()
    assert finding.severity is Severity.ERROR
    assert "none of the 9 samples of class 3 has a gradient" in finding.evidence.message


def test_silent_where_every_class_counts():
    assert not Probed("L019", "loss-mask", classes_left_out=0).findings()
