"""N018: predictions that come out of a normalization."""

from __future__ import annotations

import pytest

from tests.rules.normed import layernorm_net
from tests.rules.recording import Recording
from traindx.facts import LossFacts, TensorFacts
from traindx.findings import Severity


def run_of(
    operation: str = "NativeLayerNormBackward0",
    loss: str = "MseLossBackward0",
    *,
    affine: bool = True,
    norms: tuple[str, ...] = ("ln1", "ln2"),
) -> Recording:
    prediction = TensorFacts((8, 2), "float32", operation, -1.0, 1.0, False, False)
    facts = LossFacts("net", "MeanBackward0", loss, prediction, None)
    recording = Recording(layernorm_net(*norms, affine=affine), facts)
    recording.scalar(0, "loss", 1.0)
    recording.measured(0)
    return recording


def test_fires_at_the_last_normalization():
    (finding,) = run_of().findings("N018")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "ln2")
    assert "is the output of `ln2` (LayerNorm)" in finding.evidence.message


def test_is_an_error_without_weight_and_bias():
    (finding,) = run_of(affine=False).findings("N018")
    assert finding.severity is Severity.ERROR
    assert "no prediction can be of the target's size" in finding.evidence.cause


@pytest.mark.parametrize("operation", ["AddmmBackward0", "SelectBackward0"])
def test_silent_when_a_linear_layer_predicts(operation: str):
    assert run_of(operation).findings("N018") == ()


def test_silent_on_classification_and_without_normalizations():
    assert run_of(loss="NllLossBackward0").findings("N018") == ()
    assert run_of(norms=()).findings("N018") == ()
