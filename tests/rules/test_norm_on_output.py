"""N018: predictions that come out of a normalization."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

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
    shape: tuple[int, ...] = (8, 2),
) -> Recording:
    prediction = TensorFacts(shape, "float32", operation, -1.0, 1.0, False, False)
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


def test_warns_of_scores_that_cannot_be_sure():
    run = run_of(loss="NllLossBackward0", affine=False, shape=(8, 10))
    (finding,) = run.findings("N018")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.numbers["least"] == pytest.approx(0.278, abs=1e-3)
    assert "the loss cannot fall below 0.278" in finding.evidence.message


@pytest.mark.parametrize("classes", [2, 5, 30])
def test_no_normalized_scores_have_a_lower_loss_than_the_least(classes: int):
    run = run_of(loss="NllLossBackward0", affine=False, shape=(8, classes))
    (finding,) = run.findings("N018")
    # Of two scores in the wrong order the gradient is zero, so they begin in the right one.
    scores = torch.linspace(1, 0, classes, requires_grad=True)
    optimizer = torch.optim.Adam([scores], lr=0.05)
    for _ in range(400):
        normal = F.layer_norm(scores, (classes,), eps=1e-12)
        loss = F.cross_entropy(normal[None], torch.tensor([0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() == pytest.approx(finding.evidence.numbers["least"], rel=1e-2)
    assert loss.item() > finding.evidence.numbers["least"] - 1e-5


@pytest.mark.parametrize(
    ("operation", "affine", "shape"),
    [
        ("NativeLayerNormBackward0", True, (8, 10)),
        ("NativeLayerNormBackward0", False, (8, 1000)),
        ("NativeLayerNormBackward0", False, (8, 10, 5)),
        ("NativeBatchNormBackward0", False, (8, 10)),  # a rare class may have a large score
        ("AddmmBackward0", False, (8, 10)),
    ],
)
def test_silent_on_scores_that_can_be_sure(operation: str, affine: bool, shape: tuple[int, ...]):
    run = run_of(operation, "NllLossBackward0", affine=affine, shape=shape)
    assert run.findings("N018") == ()


def test_silent_on_classification_and_without_normalizations():
    assert run_of(loss="NllLossBackward0").findings("N018") == ()
    assert run_of(norms=()).findings("N018") == ()
