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
    (finding,) = run_of(0, 1, 1, 1, 1, 1).findings("G006")
    assert finding.severity is Severity.ERROR
    assert finding.active
    assert (finding.first_step, finding.last_step, finding.count) == (3, 5, 3)
    assert finding.evidence.numbers == {"fraction": 5 / 6, "measured_steps": 6}
    assert finding.evidence.message == (
        "in 83% of the last 6 measured steps of SGD the gradient was added onto that of the step "
        "before (threshold 50%)"
    )


def test_fires_when_gradients_are_cleared_once_an_epoch():
    (finding,) = run_of(0, *[1] * 9, 1, 1, 0, 1, 1, 1).findings("G006")
    assert finding.active
    assert finding.evidence.numbers == {"fraction": 7 / 8, "measured_steps": 8}


def test_fires_when_gradients_are_cleared_at_every_fourth_step():
    assert len(run_of(0, 1, 1, 1, 0, 1, 1, 1, 0, 1).findings("G006")) == 1


def test_fires_on_a_fraction_where_an_optimizer_stepped_several_times_in_a_step():
    assert len(run_of(0, 0.5, 0.5, 0.5).findings("G006")) == 1
    assert run_of(0, 0.49, 0.49, 0.49, 0.49, 0.49).findings("G006") == ()


def test_silent_on_one_odd_step():
    assert run_of(0, 0, 0, 1).findings("G006") == ()
    assert run_of(0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1).findings("G006") == ()


def test_silent_before_four_steps_are_measured():
    assert run_of(0, 1, 1).findings("G006") == ()


def test_silent_just_under_half_of_the_last_eight():
    assert run_of(0, 0, 0, 0, 0, 1, 1, 1).findings("G006") == ()
    assert len(run_of(0, 0, 0, 0, 1, 1, 1, 1).findings("G006")) == 1


def test_silent_when_gradients_are_accumulated_over_micro_batches():
    assert run_of(0, 0, 0, 0, 0, 0, 0, 0).findings("G006") == ()


def test_clears_once_most_steps_clear_their_gradients_again():
    assert run_of(0, *[1] * 9, 0, 0, 0, 0).findings("G006")[0].active
    (finding,) = run_of(0, *[1] * 9, 0, 0, 0, 0, 0).findings("G006")
    assert not finding.active


def test_the_thresholds_are_options():
    one_in_four = run_of(0, 0, 0, 1)
    assert len(one_in_four.findings("G006", fraction=0.25)) == 1
    assert len(run_of(0, 0, 0, 0, 0, 0, 1, 1).findings("G006", window=4)) == 1
