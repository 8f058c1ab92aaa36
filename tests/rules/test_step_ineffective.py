"""O004: steps that change nothing."""

from __future__ import annotations

from tests.rules.recording import Recording, chain
from traindx.facts import OptimizerFacts
from traindx.findings import Severity
from traindx.records import EventKind


def run_of(
    *,
    steps: int = 60,
    ratio: float = 0.0,
    absent: bool = True,
    grad: float = 0.01,
    lr: float = 0.1,
    moved: int | None = None,
    skipped: int | None = None,
) -> Recording:
    """Two layers; of every fifth step it is known how far it went."""
    recording = Recording(chain(2), OptimizerFacts("SGD", "SGD", ({"lr": lr},), 2))
    for step in range(0, steps, 5):
        recording.scalar(step, "lr", lr, "SGD", model="")
        for fqn in ("0.weight", "1.weight"):
            far = 0.1 if step == moved else ratio
            recording.scalar(step, "update.ratio", far, fqn)
            recording.scalar(step, "grad.absent", float(absent), fqn)
            recording.scalar(step, "param.rms", 0.1, fqn)
            recording.grad(step, fqn, grad)
        if step == skipped:
            recording.event(step, EventKind.AMP_SKIPPED, optimizer="SGD")
        recording.measured(step)
    return recording


def test_fires_when_gradients_are_cleared_before_the_step():
    (finding,) = run_of().findings("O004")
    assert (finding.severity, finding.active) == (Severity.ERROR, True)
    assert finding.evidence.site == ("", "SGD")
    assert finding.first_step == 25
    assert "since step 0 no step of SGD has changed any of the 2" in finding.evidence.message
    assert "cleared after backward" in finding.evidence.cause


def test_says_so_where_the_gradient_is_there_and_is_lost():
    (finding,) = run_of(absent=False).findings("O004")
    assert "The gradients are there" in finding.evidence.cause


def test_leaves_a_rate_that_no_weight_can_feel_to_another_rule():
    assert run_of(absent=False, lr=1e-10).findings("O004") == ()


def test_silent_when_weights_move():
    assert run_of(ratio=1e-7).findings("O004") == ()


def test_silent_when_they_moved_a_few_steps_ago():
    assert run_of(moved=20, steps=45).findings("O004") == ()


def test_clears_once_a_step_moves_them():
    (finding,) = run_of(moved=40).findings("O004")
    assert not finding.active


def test_silent_when_backward_leaves_nothing():
    assert run_of(grad=0.0).findings("O004") == ()


def test_silent_at_a_rate_of_zero():
    assert run_of(lr=0.0).findings("O004") == ()


def test_silent_when_a_grad_scaler_has_skipped_steps():
    assert run_of(skipped=10).findings("O004") == ()
