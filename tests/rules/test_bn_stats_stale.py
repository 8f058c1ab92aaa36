"""N002: statistics that had no time to settle."""

import math
from dataclasses import replace

import pytest

from tests.rules.recording import Recording, batchnorm_net
from traindx.findings import Severity
from traindx.records import Description, Event, EventKind, Scalar, Site

BATCH = 64


def run_of(
    steps: int,
    *,
    momentum: float = 0.01,
    shift: float = 3.0,
    evaluations: tuple[int, ...] = (),
    tracked: int = 0,
    training: int = 1,
    batch: int = BATCH,
    closes: bool = True,
) -> Recording:
    """A run on inputs whose mean is `shift` standard deviations; the gap closes as it settles."""
    recording = Recording(batchnorm_net("bn1", "bn2", momentum=momentum))
    for step in range(steps):
        if step in evaluations:
            recording.evaluated(step)
        recording.scalar(step, "batch.size", batch)
        weight = (1 - momentum) ** (step + 1 + tracked)
        for fqn in ("bn1", "bn2"):
            gap = math.sqrt((shift * weight) ** 2 + 1.5 / batch) if closes else shift
            recording.scalar(step, "norm.training", training, fqn)
            recording.scalar(step, "norm.updates", 1, fqn)
            recording.scalar(step, "norm.tracked", step + 1 + tracked, fqn)
            recording.scalar(step, "norm.initial_weight", weight, fqn)
            recording.scalar(step, "norm.running_gap", gap, fqn)
        recording.measured(step)
    if steps in evaluations:
        recording.evaluated(steps)
    return recording


def test_fires_when_an_evaluation_comes_after_forty_updates_of_one_percent():
    (finding,) = run_of(40, evaluations=(40,)).findings("N002")
    assert finding.severity is Severity.ERROR
    assert finding.active
    assert finding.evidence.site == ("net", "bn1")
    assert finding.evidence.numbers["initial_weight"] == pytest.approx(0.99**40)
    assert finding.evidence.numbers["updates"] == 40
    assert "still weigh 67% (threshold 5%) in 2 of 2 normalization layers" in (
        finding.evidence.message
    )
    # What was measured, noise included; only the threshold is met without it.
    gap = math.sqrt((3 * 0.99**39) ** 2 + 1.5 / BATCH)
    assert finding.evidence.numbers["gap"] == pytest.approx(gap, rel=1e-3)
    assert finding.evidence.numbers["noise"] == pytest.approx(math.sqrt(1.5 / BATCH))
    assert f"off by {gap:.2f} standard deviations, with a noise of 0.15" in finding.evidence.message


@pytest.mark.parametrize("updates", [1, 5, 40, 250])
def test_the_momentum_in_the_fix_leaves_under_one_percent(updates: int):
    recording = run_of(updates, evaluations=(updates,), closes=False)
    recording.ended(updates)
    (finding,) = recording.findings("N002")
    needed = finding.evidence.numbers["momentum_needed"]
    assert f"m.momentum = {needed}" in finding.evidence.fix
    assert (1 - needed) ** updates < 0.01
    assert (1 - (needed - 0.01)) ** updates >= 0.01


def test_the_number_of_batches_in_the_fix_leaves_under_one_percent():
    (finding,) = run_of(40, evaluations=(40,)).findings("N002")
    assert "run 459 batches" in finding.evidence.fix
    assert 0.99**459 < 0.01 <= 0.99**458


def test_silent_on_an_evaluation_before_training():
    verdict = run_of(40, evaluations=(0,)).verdict("N002")
    assert verdict.findings == ()
    reason = "no evaluation pass in eval mode was seen after training began"
    assert [it.reason for it in verdict.not_evaluated] == [reason]


def test_silent_when_the_statistics_have_settled():
    assert run_of(330, evaluations=(330,), closes=False).findings("N002") == ()
    recording = run_of(290, evaluations=(290,), closes=False)
    recording.ended(290)
    assert len(recording.findings("N002")) == 1


def test_silent_when_standardized_inputs_leave_no_gap():
    assert run_of(40, evaluations=(40,), shift=0.3).findings("N002") == ()


def test_silent_when_the_gap_is_the_noise_of_a_small_batch():
    assert run_of(40, evaluations=(40,), shift=0.0, batch=4).findings("N002") == ()


def test_silent_on_a_pretrained_layer():
    assert run_of(40, evaluations=(40,), tracked=5000, closes=False).findings("N002") == ()


def test_silent_on_a_layer_that_trains_in_eval_mode():
    """It evaluates as it trains, whatever its statistics are."""
    assert run_of(40, evaluations=(40,), training=0, closes=False).findings("N002") == ()


def test_clears_when_the_statistics_have_settled_at_the_next_evaluation():
    (finding,) = run_of(600, momentum=0.1, evaluations=(10, 600)).findings("N002")
    assert not finding.active
    assert finding.first_step == 10


def test_waits_for_the_end_where_as_many_updates_again_would_settle_them():
    """After 28 updates of a momentum of 0.1 the start weighs 5.2 %, after 56 of them 0.3 %."""
    recording = run_of(28, momentum=0.1, evaluations=(28,), closes=False)
    assert recording.findings("N002") == ()
    recording.ended(28)
    assert len(recording.findings("N002")) == 1


def test_silent_when_the_statistics_settled_in_steps_that_were_not_measured():
    """The weight is 9 % at the last measured step and 2 % at the evaluation."""
    recording = run_of(24, momentum=0.1, closes=False)
    recording.evaluated(36)
    assert recording.findings("N002") == ()


def test_the_updates_of_unmeasured_steps_are_counted():
    recording = run_of(24)
    recording.evaluated(36)
    (finding,) = recording.findings("N002")
    assert finding.evidence.numbers["updates"] == 36
    assert finding.evidence.numbers["initial_weight"] == pytest.approx(0.99**36)


def test_a_model_whose_training_ended_first_stays_as_stale_as_it_was():
    """The first fold of a cross-validation gets no updates while the others train."""
    recording = run_of(40, evaluations=(40,))
    recording.ended(5000)
    (finding,) = recording.findings("N002")
    assert finding.active
    assert finding.evidence.numbers["updates"] == 40


def test_clears_at_the_end_of_a_run_that_went_on_after_its_last_evaluation():
    recording = run_of(600, momentum=0.1, evaluations=(10,))
    assert recording.findings("N002")[0].active
    recording.ended(600)
    assert not recording.findings("N002")[0].active


def test_an_evaluation_of_a_second_model_before_its_own_training_does_not_count():
    late = run_of(40)
    late.items = [
        item if isinstance(item, Description) else replace(item, step=item.step + 100)
        for item in late.items
    ]
    late.evaluated(140)
    late.items.insert(1, Event(100, EventKind.EVALUATION, Site("net"), {"training": False}))
    assert len(late.findings("N002")) == 1
    del late.items[-1]
    assert late.findings("N002") == ()


def test_a_gap_that_could_not_be_recovered_in_some_steps_hides_nothing():
    recording = run_of(40, evaluations=(40,))
    recording.items = [
        replace(item, value=math.nan)
        if isinstance(item, Scalar) and item.quantity == "norm.running_gap" and item.step >= 38
        else item
        for item in recording.items
    ]
    assert len(recording.findings("N002")) == 1


def test_an_evaluation_in_train_mode_does_not_count():
    recording = run_of(40)
    recording.evaluated(40, training=True)
    assert recording.verdict("N002").evaluated == ()


def test_an_evaluation_of_another_model_does_not_count():
    recording = run_of(40)
    recording.evaluated(40, model="teacher")
    assert recording.findings("N002") == ()
