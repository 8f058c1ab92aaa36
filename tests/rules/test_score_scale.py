"""L020 score-scale on runs written by hand."""

from __future__ import annotations

import math

import pytest

from tests.rules.probing import Probed
from traindx.findings import Severity


def seen(bound: float, choices: int = 128) -> Probed:
    least, chance = math.log1p((choices - 1) * math.exp(-2 * bound)), math.log(choices)
    run = Probed("L020", "score-scale", score_bound=bound, least_loss=least / chance)
    return run.seen(bound=bound, steepest=bound, choices=choices, least=least, chance=chance)


def test_fires_where_scores_are_flat_whatever_is_learned():
    (found,) = seen(0.07).findings()
    assert found.severity is Severity.WARNING
    assert "cannot fall below 4.71; a guess gets 4.85" in found.evidence.message


def test_fires_where_only_the_greatest_score_counts():
    (found,) = seen(1000).findings()
    assert "lie between -1e+03 and 1e+03 (threshold 500)" in found.evidence.message


@pytest.mark.parametrize(("bound", "choices"), [(1, 128), (10, 128), (100, 4096), (0.3, 4)])
def test_silent_where_the_best_answer_can_be_likely(bound: float, choices: int):
    assert not seen(bound, choices).findings()


def test_silent_without_similarities():
    assert not Probed("L020", "score-scale", least_loss=0.9).findings()
