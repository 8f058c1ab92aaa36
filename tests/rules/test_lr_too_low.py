"""O002: a rate at which no weight gets anywhere."""

from __future__ import annotations

from collections.abc import Callable

from tests.rules.recording import Recording, chain
from traindx.facts import OptimizerFacts
from traindx.findings import Severity


def run_of(
    ratio: float,
    *,
    steps: int = 150,
    loss: Callable[[int], float] = lambda step: 2.3,
    rate: Callable[[int], float] = lambda step: 1e-7,
    absent: bool = False,
) -> Recording:
    recording = Recording(chain(2), OptimizerFacts("SGD", "SGD", ({"lr": 1e-7},), 2))
    for step in range(steps):
        recording.scalar(step, "lr", rate(step), "SGD", model="")
        recording.scalar(step, "loss", loss(step))
        for fqn in ("0.weight", "1.weight"):
            recording.scalar(step, "update.ratio", ratio, fqn)
            recording.scalar(step, "grad.absent", float(absent), fqn)
            recording.grad(step, fqn, 0.01)
        recording.measured(step)
    return recording


def test_fires_when_the_weights_cannot_get_anywhere():
    (finding,) = run_of(1e-6).findings("O002")
    assert (finding.severity, finding.active) == (Severity.WARNING, True)
    assert finding.evidence.site == ("", "SGD")
    assert finding.first_step == 99
    assert abs(finding.evidence.numbers["way"] - 1.5e-4) < 1e-9
    assert finding.evidence.fix.endswith("*= 1e+03")


def test_fires_when_no_update_reaches_the_last_digit():
    assert len(run_of(0.0).findings("O002")) == 1


def test_silent_when_a_hundredth_of_the_way_was_possible():
    assert run_of(2e-4).findings("O002") == ()


def test_silent_before_it_is_beyond_doubt():
    assert run_of(1e-6, steps=90).findings("O002") == ()


def test_silent_when_the_loss_falls():
    assert run_of(1e-6, loss=lambda step: 2.3 - step / 500).findings("O002") == ()


def test_silent_while_the_rate_rises():
    assert run_of(1e-6, rate=lambda step: 1e-9 * (step + 1)).findings("O002") == ()


def test_silent_when_the_rate_has_come_down():
    assert run_of(1e-6, rate=lambda step: 0.1 if step < 3 else 1e-7).findings("O002") == ()


def test_silent_when_there_is_no_gradient_at_the_step():
    assert run_of(0.0, absent=True).findings("O002") == ()
