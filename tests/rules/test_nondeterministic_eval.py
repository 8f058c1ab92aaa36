"""E004 nondeterministic-eval on runs written by hand."""

from __future__ import annotations

import pytest

from tests.rules.probing import Probed
from traindx.findings import Severity


def changing(why: str) -> Probed:
    run = Probed("E004", "evaluation-repeats", eval_change=0.5)
    return run.seen("block", why=why, kind="Block", change=0.5, tolerance=1e-4)


def test_fires_on_dropout_in_evaluation():
    (found,) = changing("dropout").findings()
    assert found.severity is Severity.WARNING
    assert "moves by 0.5 of its RMS" in found.evidence.message


@pytest.mark.parametrize("why", ["random", "state", "unseeded"])
def test_fires_as_information_on_what_may_be_meant(why: str):
    (found,) = changing(why).findings()
    assert found.severity is Severity.INFO
    assert found.evidence.cause


def test_silent_where_every_call_gives_the_same():
    assert Probed("E004", "evaluation-repeats", eval_change=0.0).findings() == []


def test_silent_within_rounding():
    assert Probed("E004", "evaluation-repeats", eval_change=1e-6).findings() == []
