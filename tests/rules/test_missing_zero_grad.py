"""G006: gradients that pile up."""

from tests.rules.recording import Recording
from traindx.findings import Severity


def run_of(*fractions: float) -> Recording:
    recording = Recording()
    for step, fraction in enumerate(fractions):
        recording.scalar(step, "grad.uncleared", fraction, "SGD", model="")
        recording.measured(step)
    return recording


def test_fires_when_no_step_clears_its_gradients():
    (finding,) = run_of(0, 1, 1, 1).findings("G006")
    assert finding.severity is Severity.ERROR
    assert finding.active
    assert (finding.first_step, finding.last_step, finding.count) == (1, 3, 3)
    assert "100% of the last steps of SGD" in finding.evidence.message
    assert "threshold 99%" in finding.evidence.message


def test_silent_on_a_single_uncleared_step():
    assert run_of(0, 0, 1, 0, 1, 0).findings("G006") == ()


def test_silent_when_some_of_the_steps_are_cleared():
    assert run_of(0, 0.98, 0.98, 0.98).findings("G006") == ()


def test_silent_when_gradients_are_accumulated_over_micro_batches():
    assert run_of(0, 0, 0, 0).findings("G006") == ()


def test_clears_once_the_gradients_are_cleared_again():
    (finding,) = run_of(0, 1, 1, 0, 0).findings("G006")
    assert not finding.active


def test_the_threshold_is_an_option():
    assert len(run_of(0, 0.6, 0.6).findings("G006", fraction=0.5)) == 1
