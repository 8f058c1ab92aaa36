"""G009: clipping to next to nothing."""

from tests.rules.recording import Recording, chain
from traindx.facts import OptimizerFacts
from traindx.findings import Severity


def run_of(
    ratios: list[float], *, moved: float = 1e-6, lr: tuple[float, float] = (0.1, 0.1)
) -> Recording:
    recording = Recording(chain(2), OptimizerFacts("SGD", "SGD", ({"lr": 0.1},), 2))
    for step, ratio in enumerate(ratios):
        recording.scalar(step, "clip.ratio", ratio, model="")
        recording.scalar(step, "lr", lr[0] if step < 2 else lr[1], "SGD", model="")
        for fqn in ("0.weight", "1.weight"):
            recording.scalar(step, "update.ratio", moved, fqn)
        recording.measured(step)
    return recording


def test_fires_when_next_to_nothing_is_left_of_each_gradient():
    (finding,) = run_of([5000.0] * 20).findings("G009")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("", "SGD")
    assert finding.evidence.message == (
        "100% of the last gradients exceed the bound of clipping 10-fold, in the median 5e+03-fold"
        ", and a step changes the median weight by 1.0e-06 of it"
    )


def test_silent_when_the_learning_rate_makes_up_for_it():
    assert run_of([5000.0] * 20, moved=1e-3).findings("G009") == ()


def test_silent_when_some_gradients_are_within_the_bound():
    assert run_of([5000.0, 0.5] * 10).findings("G009") == ()


def test_silent_when_gradients_exceed_the_bound_by_little():
    assert run_of([9.0] * 20).findings("G009") == ()


def test_silent_at_the_end_of_a_schedule():
    assert run_of([5000.0] * 20, lr=(0.1, 0.005)).findings("G009") == ()


def test_silent_before_ten_steps():
    assert run_of([5000.0] * 9).findings("G009") == ()
