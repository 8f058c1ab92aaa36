"""O014: an optimizer that never steps."""

from tests.rules.recording import Recording, chain
from traindx.findings import Severity


def run_of(steps: int, *, waits_until: int, ended: bool = True) -> Recording:
    recording = Recording(chain(2))
    for step in range(steps):
        if step < waits_until:
            recording.scalar(step, "optimizer.waiting", step + 1, "1")
        recording.scalar(step, "backwards", 1, model="")
        recording.measured(step)
    if ended:
        recording.ended(steps)
    return recording


def test_fires_when_the_run_ends_without_a_step():
    (finding,) = run_of(20, waits_until=20).findings("O014")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "1")
    assert finding.evidence.numbers == {"steps": 20}
    assert finding.evidence.message == (
        "the only optimizer of parameters of `1` has not stepped in the 20 steps since it was made"
        ", though they have gradients (threshold 20)"
    )


def test_fires_after_two_hundred_steps_of_a_run_that_goes_on():
    (finding,) = run_of(210, waits_until=210, ended=False).findings("O014")
    assert finding.active
    assert run_of(190, waits_until=190, ended=False).findings("O014") == ()


def test_silent_when_its_turn_comes_in_every_fifth_step():
    assert run_of(100, waits_until=4).findings("O014") == ()


def test_silent_in_a_run_too_short_to_tell():
    assert run_of(19, waits_until=19).findings("O014") == ()


def test_clears_once_the_turn_of_a_later_phase_has_come():
    (finding,) = run_of(300, waits_until=250).findings("O014")
    assert not finding.active
