"""L012 loss-component-dominates on runs written by hand."""

from __future__ import annotations

import pytest

from tests.rules.probing import Probed
from traindx.findings import Severity


def seen(left: float, alone: float) -> Probed:
    run = Probed("L012", "loss-terms", term_left=left, term_alone=alone)
    return run.seen(term=1, terms=2, function="mse_loss", weight=1.0, share=0.004)


def test_fires_where_a_term_is_learned_alone_and_not_with_the_others():
    (found,) = seen(1.02, 0.3).findings()
    assert found.severity is Severity.WARNING
    assert "stays at 1.02 of what a guess gets" in found.evidence.message
    assert "of the first gradients it makes 0.4%" in found.evidence.message


@pytest.mark.parametrize(("left", "alone"), [(0.85, 0.1), (0.99, 0.8), (0.5, 0.5)])
def test_silent_where_it_is_learned_or_cannot_be(left: float, alone: float):
    assert not seen(left, alone).findings()


def test_silent_where_the_whole_loss_was_enough():
    assert not Probed("L012", "loss-terms", term_left=0.6).findings()
