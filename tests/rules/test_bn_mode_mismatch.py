"""N004: modes of normalization layers."""

import math

from tests.rules.recording import Recording, batchnorm_net, chain
from traindx.findings import Severity

NORMS = ("bn1", "bn2")


def run_of(
    flags: list[int],
    *,
    mode: list[int] | None = None,
    tracked: int = 0,
    change: float = 0.01,
    momentum: float = 0.1,
    updates: int = 1,
    affine_frozen: bool = False,
    initial_weight: float = 1.0,
    norms: tuple[str, ...] = NORMS,
) -> Recording:
    """A run of one step per flag, in which the layers and the model are in these modes."""
    recording = Recording(batchnorm_net(*NORMS, momentum=momentum, affine_frozen=affine_frozen))
    for step, flag in enumerate(flags):
        recording.scalar(step, "mode.training", mode[step] if mode else flag)
        for fqn in NORMS:
            own = flag if fqn in norms else 1
            tracked += own
            recording.scalar(step, "norm.training", own, fqn)
            recording.scalar(step, "norm.tracked", tracked, fqn)
            weight = (1 - momentum) ** tracked if tracked else initial_weight
            recording.scalar(step, "norm.initial_weight", weight, fqn)
            recording.scalar(step, "norm.updates", own * updates, fqn)
            recording.scalar(step, "norm.running_change", change if own else 0.0, fqn)
        recording.measured(step)
    return recording


def test_fires_when_the_model_was_not_switched_back_after_an_evaluation():
    (finding,) = run_of([1] * 10 + [0] * 30).findings("N004")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "bn1")
    assert finding.active
    assert (finding.first_step, finding.last_step) == (30, 39)
    assert finding.evidence.message == (
        "2 of 2 normalization layers of net have trained in eval mode for 29 steps (threshold 20) "
        "after training in train mode before"
    )
    assert finding.evidence.fix.startswith("Call `net.train()`")


def test_fires_when_statistics_that_were_never_updated_are_used_from_the_start():
    (finding,) = run_of([0] * 25).findings("N004")
    assert "that no batch has ever updated" in finding.evidence.message


def test_fires_when_momentum_zero_keeps_the_statistics_from_moving():
    (finding,) = run_of([1] * 25, momentum=0, change=0.0).findings("N004")
    assert "without any change" in finding.evidence.message
    assert "`momentum=0`" in finding.evidence.cause


def test_fires_when_momentum_zero_leaves_the_change_unknown():
    assert len(run_of([1] * 25, momentum=0, change=math.nan).findings("N004")) == 1


def test_fires_at_the_first_affected_layer_and_counts_the_others():
    mode = [1] * 5 + [0] * 25
    (finding,) = run_of(mode, mode=mode, norms=("bn2",)).findings("N004")
    assert finding.evidence.site.fqn == "bn2"
    assert finding.evidence.message.startswith("1 of 2 normalization layers")
    assert finding.evidence.layers == ("bn2",)


def test_silent_on_a_pretrained_layer_kept_in_eval_mode():
    assert run_of([0] * 60, tracked=5000).findings("N004") == ()


def test_silent_on_statistics_loaded_from_a_checkpoint_that_counts_no_updates():
    """Nothing was tracked, but the statistics are not the initial 0 and 1 any more."""
    assert run_of([0] * 60, initial_weight=0.0).findings("N004") == ()


def test_silent_on_a_layer_whose_own_weights_are_frozen_too():
    """Statistics may come from a file that does not count updates."""
    assert run_of([0] * 60, affine_frozen=True).findings("N004") == ()


def test_silent_when_a_backbone_is_frozen_after_it_was_trained_in_the_same_run():
    assert run_of([1] * 20 + [0] * 40, affine_frozen=True).findings("N004") == ()


def test_silent_when_normalizations_are_frozen_later_on_purpose():
    assert run_of([1] * 20 + [0] * 40, mode=[1] * 60).findings("N004") == ()


def test_silent_when_the_model_is_switched_back_in_time():
    assert run_of(([1] * 10 + [0] * 20) * 4).findings("N004") == ()


def test_silent_on_momentum_zero_in_a_layer_that_is_not_called():
    assert run_of([1] * 60, momentum=0, change=0.0, updates=0).findings("N004") == ()


def test_silent_on_momentum_zero_where_the_statistics_are_set_by_hand():
    assert run_of([1] * 60, momentum=0, change=0.2).findings("N004") == ()


def test_silent_on_a_constant_input_that_moves_no_statistics():
    assert run_of([1] * 60, change=0.0).findings("N004") == ()


def test_silent_in_train_mode():
    assert run_of([1] * 60).findings("N004") == ()


def test_clears_when_the_model_is_switched_back():
    (finding,) = run_of([1] * 10 + [0] * 30 + [1] * 2).findings("N004")
    assert not finding.active


def test_is_not_evaluated_on_a_net_without_running_statistics():
    recording = Recording(chain(3))
    recording.measured(0)
    verdict = recording.verdict("N004")
    reason = "no normalization layer with running statistics in net"
    assert [it.reason for it in verdict.not_evaluated] == [reason]
