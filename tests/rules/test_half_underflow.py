"""P001 half-underflow on runs written by hand."""

from __future__ import annotations

import pytest

from tests.rules.probing import Probed
from traindx.records import Site


def flushing(flushed: float, lost: float, dtype: str = "float16") -> Probed:
    run = Probed("P001", "half-precision")
    for fqn, times in (("first.weight", 1.0), ("last.weight", 0.0)):
        run.number("fp16_flushed", flushed * times, fqn)
        run.number("fp16_lost", lost * times, fqn)
    return run.seen(dtype=dtype, scale=128.0)


def test_fires_where_much_of_a_gradient_is_flushed():
    (found,) = flushing(0.9, 0.5).findings()
    assert found.evidence.site == Site("net")
    assert "of 1 of 2 parameters" in found.evidence.message
    assert "loss scale of 128" in found.evidence.message
    assert "`first.weight`, 90% of the entries with 50% of the norm" in found.evidence.message
    assert found.evidence.layers == ("first",)


@pytest.mark.parametrize(("flushed", "lost"), [(0.29, 0.5), (0.9, 0.09), (0.0, 0.0)])
def test_silent_where_few_are_flushed_or_they_do_not_matter(flushed: float, lost: float):
    assert flushing(flushed, lost).findings() == []


def test_silent_on_bfloat16_which_has_the_range_of_float32():
    assert flushing(0.9, 0.5, "bfloat16").findings() == []


def test_silent_of_one_number_without_the_other():
    run = Probed("P001", "half-precision")
    run.number("fp16_flushed", 1.0, "first.weight")
    assert run.findings() == []
