"""S014: parts of a model that are copies of one another."""

from tests.rules.recording import Recording, chain
from traindx.findings import Severity


def run_of(*, weights: float = 0.5, gradients: float = 0.1, steps: int = 12) -> Recording:
    """Two layers: the weights and gradients of the second are these, of the first 0.5 and 0.1."""
    recording = Recording(chain(2))
    for step in range(steps):
        for fqn, weight, gradient in (("0", 0.5, 0.1), ("1", weights, gradients)):
            recording.grad(step, f"{fqn}.weight", gradient / (1 + step))
            recording.scalar(step, "param.rms", weight, f"{fqn}.weight")
        recording.measured(step)
    return recording


def test_fires_on_two_layers_with_equal_weights_and_gradients():
    (finding,) = run_of().findings("S014")
    assert finding.severity is Severity.WARNING
    assert finding.active
    assert finding.evidence.site == ("net", "1")
    assert finding.first_step == 0
    assert finding.evidence.numbers == {"weights": 2}
    assert finding.evidence.message.startswith(
        "`1.weight` has the weights of `0.weight` and gets its gradients, number for number"
    )


def test_silent_where_equal_weights_get_other_gradients():
    assert run_of(gradients=0.1 * (1 + 1e-15)).findings("S014") == ()


def test_silent_where_other_weights_get_equal_gradients():
    assert run_of(weights=0.5 * (1 + 1e-15)).findings("S014") == ()


def test_silent_before_three_measured_steps():
    assert run_of(steps=2).findings("S014") == ()


def test_silent_on_layers_of_zeros():
    assert run_of(weights=0.0, gradients=0.0).findings("S014") == ()
