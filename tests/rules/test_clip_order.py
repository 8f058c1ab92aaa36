"""G010: clipping at the wrong moment."""

from tests.rules.recording import Recording, chain
from traindx.facts import OptimizerFacts
from traindx.findings import Severity


def run_of(*shares: float, quantity: str = "clip.late") -> Recording:
    recording = Recording(chain(2), OptimizerFacts("SGD", "SGD", ({"lr": 0.1},), 2))
    for step, share in enumerate(shares):
        for each in ("clip.late", "clip.scaled"):
            recording.scalar(step, each, share if each == quantity else 0, model="")
        recording.measured(step)
    return recording


def test_fires_when_gradients_are_clipped_after_the_step():
    (finding,) = run_of(0, 1, 1, 1, 1).findings("G010")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("", "SGD")
    assert finding.evidence.message == (
        "in 80% of the calls in the last 5 measured steps gradients were clipped after the step "
        "(threshold 50%)"
    )
    assert "between `loss.backward()` and `optimizer.step()`" in finding.evidence.fix


def test_fires_when_gradients_are_clipped_before_they_are_unscaled():
    (finding,) = run_of(0, 1, 1, 1, quantity="clip.scaled").findings("G010")
    assert "multiplied by the loss scale" in finding.evidence.message
    assert "scaler.unscale_(optimizer)" in finding.evidence.fix


def test_silent_when_clipping_stands_where_it_should():
    assert run_of(0, 0, 0, 0, 0, 0).findings("G010") == ()


def test_silent_on_one_odd_call():
    assert run_of(1, 0, 0, 0, 0, 0).findings("G010") == ()


def test_silent_before_four_steps():
    assert run_of(1, 1, 1).findings("G010") == ()
