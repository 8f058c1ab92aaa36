"""E013: inputs of evaluation in another scale, on runs written by hand."""

from __future__ import annotations

import pytest

from tests.rules.recording import Recording, chain, failures
from traindx.facts import Json
from traindx.findings import Severity
from traindx.records import EventKind

ALIKE: dict[str, Json] = {
    "trained": 600,
    "evaluated": 256,
    "features": 100,
    "ratio": 1.02,
    "spread": 0.08,
    "far": 0.02,
    "shift": 0.1,
    "profile": 0.6,
    "slope": 0.99,
    "correlation": 0.99,
    "standard": 0.3,
    "standard_evaluated": 0.3,
}
SCALED: dict[str, Json] = {"ratio": 0.35, "slope": 0.36, "spread": 0.05, "far": 0.99}
OF_EACH: dict[str, Json] = {
    "ratio": 3.0,
    "slope": 0.1,
    "spread": 2.0,
    "correlation": 0.1,
    "far": 0.7,
    "standard": 0.95,
    "standard_evaluated": 0.1,
}


def run_of(*details: dict[str, Json], model: str = "net") -> Recording:
    """A run whose model was evaluated with inputs that compare like this."""
    recording = Recording(chain(2))
    for step in range(10):
        recording.scalar(step, "loss", 1.0)
        recording.scalar(step, "mode.training", 1.0)
        recording.measured(step)
    for detail in details:
        recording.event(9, EventKind.INPUTS, model, **(ALIKE | detail))
    recording.ended(10)
    return recording


def test_fires_where_all_features_are_scaled_alike():
    (finding,) = run_of(SCALED).findings("E013")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "")
    assert "inputs of 0.35 times the deviation of those in training" in finding.evidence.message
    assert finding.evidence.cause == "They are the same features, scaled otherwise."


def test_fires_where_they_are_shifted_alone():
    shifted: dict[str, Json] = {"shift": 1.4, "spread": 0.05}
    assert len(run_of(shifted).findings("E013")) == 1


@pytest.mark.parametrize(
    ("ours", "theirs", "where"),
    [(0.95, 0.1, "in training, and not in evaluation"), (0.0, 0.9, "in evaluation, and not in tr")],
)
def test_fires_where_one_of_both_is_standardized(ours: float, theirs: float, where: str):
    sides: dict[str, Json] = {"standard": ours, "standard_evaluated": theirs}
    (finding,) = run_of(OF_EACH | sides).findings("E013")
    assert where in finding.evidence.cause


def test_fires_where_features_are_of_quite_another_size():
    (finding,) = run_of({"ratio": 0.04, "spread": 3.0, "far": 0.9}).findings("E013")
    assert "in other units" in finding.evidence.cause


@pytest.mark.parametrize(
    "detail",
    [
        {},
        SCALED | {"ratio": 1.4, "slope": 1.4},
        SCALED | {"correlation": 0.9},  # other data
        SCALED | {"spread": 0.5},  # one class alone
        SCALED | {"slope": 1.0, "spread": 0.1},  # noise in training, none in evaluation
        SCALED | {"slope": -0.4},
        OF_EACH | {"far": 0.4},
        OF_EACH | {"standard_evaluated": 0.5},
        {"ratio": 4.0, "spread": 1.0, "far": 0.9},
        SCALED | {"evaluated": 32},
        SCALED | {"features": 4},
    ],
)
def test_silent_on_other_data_noise_and_few_samples(detail: dict[str, Json]):
    assert run_of(detail).findings("E013") == ()


def test_the_last_comparison_counts():
    assert run_of(SCALED, {}).findings("E013") == ()


def test_silent_of_a_model_that_is_not_trained():
    verdict = run_of(SCALED, model="teacher").verdict("E013")
    assert failures(verdict) == []
    assert verdict.findings == ()
