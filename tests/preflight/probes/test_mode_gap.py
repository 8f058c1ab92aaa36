"""How far the output in training lies from that in evaluation."""

from __future__ import annotations

import pytest
from torch import nn

from tests.preflight.cases import case_of, classifier, labelled, probed, reason


@pytest.mark.parametrize(
    ("hidden", "apart"),
    [
        (nn.ReLU(), False),
        (nn.Dropout(0.5), True),
        (nn.BatchNorm1d(32), True),
        (nn.Dropout(0.0), False),
    ],
)
def test_the_gap_is_that_of_dropout_and_batch_statistics(hidden: nn.Module, apart: bool):
    run = probed(case_of(classifier(hidden), labelled(), nn.CrossEntropyLoss()), "mode-gap")
    (gap,) = run.series("probe.mode_gap")
    assert (gap.last > 1e-3) is apart


def test_a_model_that_is_trained_in_evaluation_has_none():
    run = probed(case_of(classifier().eval(), labelled(), nn.CrossEntropyLoss()), "mode-gap")
    assert reason(run) == "the model is trained in evaluation mode"
