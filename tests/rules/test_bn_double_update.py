"""N005: statistics updated twice a step."""

from __future__ import annotations

import pytest

from tests.rules.recording import Recording, batchnorm_net
from traindx.findings import Severity
from traindx.records import EventKind


def run_of(
    *,
    updates: int = 1,
    calls: int = 1,
    gap: float | None = None,
    batch: int = 64,
    in_eval: bool = True,
    passes: bool = False,
    steps: int = 10,
) -> Recording:
    recording = Recording(batchnorm_net("bn1", "bn2"))
    for step in range(steps):
        recording.scalar(step, "loss", 1.0)
        recording.scalar(step, "batch.size", batch)
        for fqn in ("bn1", "bn2"):
            recording.scalar(step, "norm.updates", updates, fqn)
            recording.scalar(step, "norm.calls", calls, fqn)
            if gap is not None:
                recording.scalar(step, "norm.pass_gap", gap, fqn)
        if passes:
            recording.event(
                step, EventKind.EVALUATION, "net", forwards=1, training=True, batch_norms=2
            )
        recording.measured(step)
    if in_eval:
        recording.evaluated(steps - 1)
    recording.ended(steps)
    return recording


def test_fires_when_checkpointing_runs_the_layers_again():
    (finding,) = run_of(updates=2, in_eval=False).findings("N005")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "bn1")
    assert finding.evidence.layers == ("bn1", "bn2")
    assert "update their statistics twice for each call" in finding.evidence.message
    assert "momentum=0.0513" in finding.evidence.fix


@pytest.mark.parametrize(("updates", "calls"), [(1, 1), (2, 2), (3, 1), (0, 0)])
def test_silent_when_updates_are_not_twice_the_calls(updates: int, calls: int):
    assert run_of(updates=updates, calls=calls).findings("N005") == ()


def test_silent_when_passes_without_gradient_explain_the_updates():
    assert run_of(updates=2, passes=True).findings("N005") == ()


def test_silent_before_enough_steps():
    assert run_of(updates=2, steps=4).findings("N005") == ()


def test_fires_when_two_passes_of_a_step_bring_unlike_batches():
    (finding,) = run_of(gap=1.5).findings("N005")
    assert finding.severity is Severity.WARNING
    assert "1.50 standard deviations apart, at `bn1`" in finding.evidence.message
    assert finding.evidence.fix == "outputs = net(torch.cat([first, second]))"
    (finding,) = run_of(gap=3.0).findings("N005")
    assert finding.severity is Severity.ERROR


def test_silent_on_two_batches_of_the_same_data():
    assert run_of(gap=0.2).findings("N005") == ()


def test_silent_where_small_batches_explain_the_distance():
    """sqrt(1.1^2 - 2/B) is 0.98 for batches of 8; of less than 8 nothing is said."""
    assert len(run_of(gap=1.1, batch=16).findings("N005")) == 1
    assert run_of(gap=1.1, batch=8).findings("N005") == ()
    assert run_of(gap=9.0, batch=7).findings("N005") == ()


def test_silent_in_a_model_that_is_never_evaluated():
    assert run_of(gap=3.0, in_eval=False).findings("N005") == ()
