"""O005: a learning rate that is gone too soon."""

import math
from collections.abc import Callable

import pytest

from tests.rules.recording import Recording, chain
from traindx.findings import Severity


def run_of(rate: Callable[[int], float], steps: int = 300, *, loss: float = 1.0) -> Recording:
    recording = Recording(chain(2))
    for step in range(steps):
        recording.scalar(step, "lr", rate(step), "SGD", model="")
        recording.scalar(step, "loss", loss if step else 1.0)
        recording.measured(step)
    recording.ended(steps)
    return recording


def test_fires_when_an_exponential_decay_is_stepped_at_each_batch():
    (finding,) = run_of(lambda step: 0.1 * 0.8**step).findings("O005")
    assert finding.severity is Severity.WARNING
    assert finding.active
    assert finding.evidence.site == ("", "SGD")
    assert finding.evidence.numbers["steps_before"] == 21
    assert finding.evidence.numbers["steps_after"] == 279
    assert finding.first_step < 80
    assert finding.evidence.message.startswith(
        "the learning rate of SGD fell from 0.1 to less than 1.00% of that in 21 steps, and has "
        "been there for 279 steps since"
    )


def test_fires_when_a_linear_decay_ends_after_a_fifth_of_the_steps():
    assert len(run_of(lambda step: max(0.0, 1 - step / 60)).findings("O005")) == 1


def test_the_fall_is_taken_to_lie_between_two_measured_steps():
    recording = Recording(chain(2))
    for step in (0, 1, 2, 10, 50, 70, 150, 200):
        recording.scalar(step, "lr", max(0.0, 1 - step / 60), "SGD", model="")
        recording.measured(step)
    (finding,) = recording.findings("O005")
    assert finding.evidence.numbers["steps_before"] == 60
    assert finding.evidence.numbers["steps_after"] == 141


def cosine(step: int, period: int = 300) -> float:
    return (1 + math.cos(math.pi * (step % period) / period)) / 2


@pytest.mark.parametrize(
    "rate",
    [
        cosine,
        lambda step: cosine(step, 50),
        lambda step: min(step / 90, cosine(max(step - 90, 0), 210)),
        lambda step: (1 - step / 300) ** 2,
        lambda step: 1e-4 ** (step / 300),
        lambda step: 0.1 ** (step // 100),
        lambda step: 0.0,
        lambda step: 1.0,
    ],
    ids=["cosine", "restarts", "one-cycle", "square", "exponential", "staircase", "zero", "fixed"],
)
def test_silent_on_schedules_that_use_their_steps(rate):
    assert run_of(rate).findings("O005") == ()


def test_silent_after_a_search_for_the_rate():
    assert run_of(lambda step: 1e-5 * 2**step if step < 20 else 1e-3).findings("O005") == ()


def test_silent_when_a_second_phase_is_given_a_hundredth_and_less():
    assert run_of(lambda step: 1e-2 if step < 50 else 1e-5).findings("O005") == ()


def test_silent_when_the_loss_has_come_down_all_the_same():
    assert run_of(lambda step: 0.8**step, loss=0.01).findings("O005") == ()


def test_clears_once_the_rate_rises_again():
    (finding,) = run_of(lambda step: 0.8 ** (step % 200)).findings("O005")
    assert not finding.active
