"""E007 batch-mixing on runs written by hand."""

from __future__ import annotations

from tests.rules.probing import Probed
from traindx.findings import Severity
from traindx.records import Site


def mixing(mode: str, kind: str = "Softmax") -> Probed:
    run = Probed("E007", "batch-composition", batch_mixing=0.3)
    return run.seen("head", mode=mode, kind=kind, mixing=0.3, tolerance=1e-4)


def test_fires_on_an_output_that_moves_with_its_neighbours_in_evaluation():
    (found,) = mixing("evaluation").findings()
    assert found.severity is Severity.ERROR
    assert found.evidence.site == Site("net", "head")
    assert "moves by 0.3 of its RMS" in found.evidence.message


def test_fires_as_information_where_it_mixes_in_training_only():
    (found,) = mixing("training").findings()
    assert found.severity is Severity.INFO


def test_silent_of_training_where_evaluation_tells_it_already():
    run = mixing("evaluation").seen("head", mode="training", kind="Softmax", mixing=0.2)
    assert [found.severity for found in run.findings()] == [Severity.ERROR]


def test_silent_where_only_batch_normalization_mixes():
    run = Probed("E007", "batch-composition", batch_mixing=0.0, batch_mixing_training=0.4)
    assert run.findings() == []


def test_the_fix_of_attention_and_rnns_is_their_axis():
    (found,) = mixing("evaluation", "LSTM").findings()
    assert found.evidence.fix.startswith("LSTM(..., batch_first=True)")
