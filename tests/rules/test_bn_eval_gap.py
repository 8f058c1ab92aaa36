"""N001: batch statistics against running ones."""

import math

import pytest

from tests.rules.recording import Recording, batchnorm_net
from traindx.findings import Severity
from traindx.records import Point, Record, Site, TensorStats


def run_of(
    gaps: list[float],
    *,
    batch: int = 64,
    training: int = 1,
    evaluate: bool = True,
    momentum: float = 0.5,
) -> Recording:
    """A run whose second layer has these gaps and whose first has none, evaluated at its end."""
    recording = Recording(batchnorm_net("bn1", "bn2"))
    for step, gap in enumerate(gaps):
        recording.scalar(step, "batch.size", batch)
        for fqn, own in (("bn1", 0.1), ("bn2", gap)):
            recording.scalar(step, "norm.training", training, fqn)
            recording.scalar(step, "norm.running_gap", own, fqn)
            recording.scalar(step, "norm.tracked", step + 1, fqn)
            recording.scalar(step, "norm.initial_weight", (1 - momentum) ** (step + 1), fqn)
        recording.measured(step)
    if evaluate:
        recording.evaluated(len(gaps))
    return recording


def test_fires_on_a_lasting_gap():
    (finding,) = run_of([0.8] * 20).findings("N001")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "bn2")
    assert finding.evidence.layers == ("bn2",)
    assert finding.evidence.numbers["gap"] == 0.8
    assert finding.evidence.numbers["noise"] == pytest.approx(math.sqrt(1.5 / 64))
    assert "1 of 2 normalization layers are off by more than 0.5" in finding.evidence.message
    assert "`bn2` by 0.80 with a noise of 0.15 (median of 10" in finding.evidence.message


def test_fires_as_an_error_above_one_standard_deviation():
    (finding,) = run_of([1.4] * 20).findings("N001")
    assert finding.severity is Severity.ERROR


def test_silent_just_under_the_threshold():
    # The noise of a batch of 64 lifts a gap of 0.5 to 0.5229.
    assert run_of([0.522] * 20).findings("N001") == ()
    assert len(run_of([0.524] * 20).findings("N001")) == 1


def test_silent_when_small_batches_scatter_by_their_size():
    assert run_of([0.86] * 20, batch=2).findings("N001") == ()
    assert len(run_of([0.86] * 20, batch=8).findings("N001")) == 1


def with_outputs(recording: Recording, elements: int) -> Recording:
    """The same run, with outputs of `bn2` of so many elements measured at every step."""
    stats = TensorStats(elements, 0.0, float(elements), -3.0, 3.0)
    steps = {item.step for item in recording.items}
    outputs = [Record(step, Site("net", "bn2"), Point.OUTPUT, stats) for step in sorted(steps)]
    recording.items = sorted([*outputs, *recording.items], key=lambda item: item.step)
    return recording


def test_the_positions_of_a_convolution_make_a_small_batch_less_noisy():
    """Two images of 16 x 16: 512 elements a channel count as 32 samples, not as two."""
    assert run_of([0.86] * 20, batch=2).findings("N001") == ()
    ten_channels = 10 * 2 * 16 * 16
    (finding,) = with_outputs(run_of([0.86] * 20, batch=2), ten_channels).findings("N001")
    assert finding.evidence.numbers["gap"] == 0.86
    assert finding.evidence.numbers["noise"] == pytest.approx(math.sqrt(1.5 / 32))
    assert with_outputs(run_of([0.54] * 20, batch=2), ten_channels).findings("N001") == ()


def test_a_layer_without_positions_is_as_noisy_as_its_batch_is_small():
    assert with_outputs(run_of([0.86] * 20, batch=2), 10 * 2).findings("N001") == ()


def test_silent_when_a_few_batches_differ_from_the_rest():
    assert run_of([0.1] * 20 + [5.0] * 4).findings("N001") == ()


def test_silent_when_the_gap_of_the_first_steps_has_closed():
    assert run_of([3.0] * 10 + [0.2] * 10).findings("N001") == ()
    # The cadence measures the first ten steps closely and few of those that follow.
    assert run_of([3.0] * 10 + [0.2] * 4).findings("N001") == ()


def test_silent_until_the_initial_statistics_are_forgotten_and_three_steps_measured():
    # With momentum 0.5 they weigh 1/32 after the fifth update: steps 4, 5 and 6 count.
    assert run_of([2.0] * 6).findings("N001") == ()
    assert len(run_of([2.0] * 7).findings("N001")) == 1


def test_silent_while_the_initial_statistics_weigh_since_that_is_told_by_stale_statistics():
    assert run_of([2.0] * 20, momentum=0.01).findings("N001") == ()


def test_silent_on_steps_whose_gap_could_not_be_recovered():
    assert run_of([math.nan] * 20).findings("N001") == ()


def test_silent_on_a_layer_that_trains_in_eval_mode():
    assert run_of([2.0] * 20, training=0).findings("N001") == ()


def test_is_not_evaluated_when_the_model_is_never_evaluated():
    verdict = run_of([2.0] * 20, evaluate=False).verdict("N001")
    reason = "no evaluation pass in eval mode was seen after training began"
    assert [it.reason for it in verdict.not_evaluated] == [reason]


def test_clears_when_the_next_evaluation_shows_no_gap():
    recording = run_of([2.0] * 15)
    for step in range(15, 40):
        recording.scalar(step, "batch.size", 64)
        recording.scalar(step, "norm.training", 1, "bn2")
        recording.scalar(step, "norm.running_gap", 0.1, "bn2")
        recording.scalar(step, "norm.initial_weight", 0.0, "bn2")
        recording.measured(step)
    assert recording.findings("N001")[0].active
    recording.evaluated(40)
    assert not recording.findings("N001")[0].active
