"""P008 half-overflow on runs written by hand."""

from __future__ import annotations

from tests.rules.probing import Probed
from traindx.records import Site


def overflowing(number: int) -> Probed:
    run = Probed("P008", "half-precision")
    run.number("half_nonfinite", number, "layer")
    if number:
        run.seen("layer", kind="Linear", largest=70_000.0)
    return run.seen(dtype="float16", scale=1.0)


def test_fires_where_a_layer_overflows():
    (found,) = overflowing(12).findings()
    assert found.evidence.site == Site("net", "layer")
    told = "12 elements that `layer` (Linear) makes are not finite in float16"
    assert told in found.evidence.message
    assert "7e+04" in found.evidence.message


def test_silent_where_all_are_finite():
    assert overflowing(0).findings() == []


def test_silent_without_half_precision():
    assert Probed("P008", "half-precision").findings() == []
