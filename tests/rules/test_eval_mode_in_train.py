"""E002: models that train in eval mode."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.recording import Recording, batchnorm_net, chain
from traindx.facts import ModelFacts, ModuleFacts


def net(*kinds: str, p: float = 0.3) -> ModelFacts:
    """A model with a module of each of these classes."""
    parts = [
        ModuleFacts(f"part{i}.parametrizations.weight.0", kind, i + 9, 1, {"p": p})
        for i, kind in enumerate(kinds)
    ]
    return replace(chain(2), modules=(*chain(2).modules, *parts))


def run_of(flags: list[int], model: ModelFacts) -> Recording:
    recording = Recording(model)
    for step, flag in enumerate(flags):
        recording.scalar(step, "mode.training", flag)
        recording.measured(step)
    return recording


SWITCHED = [1] * 10 + [0] * 30


def test_fires_when_dropout_does_nothing_any_more():
    (finding,) = run_of(SWITCHED, net("Dropout", "Dropout2d")).findings("E002")
    assert finding.evidence.site == ("net", "")
    assert finding.evidence.message == (
        "net has trained in eval mode for 29 steps (threshold 20), in which its 2 dropout layers "
        "did nothing"
    )
    assert "nothing switched it back" in finding.evidence.cause


def test_fires_from_the_start_where_spectral_normalization_stands_still():
    (finding,) = run_of([0] * 30, net("_SpectralNorm")).findings("E002")
    assert finding.evidence.layers == ("part0",)
    assert "when its training began" in finding.evidence.cause


def test_silent_when_dropout_was_off_from_the_start():
    assert run_of([0] * 60, net("Dropout")).findings("E002") == ()


def test_silent_without_anything_that_eval_mode_switches_off():
    assert run_of(SWITCHED, net("Linear")).findings("E002") == ()
    assert run_of(SWITCHED, net("Dropout", p=0.0)).findings("E002") == ()


def test_silent_where_batchnorm_tells_of_it():
    assert run_of(SWITCHED, batchnorm_net("bn")).findings("E002") == ()


def test_silent_up_to_the_threshold_and_when_switched_back():
    assert run_of([1] * 10 + [0] * 20, net("Dropout")).findings("E002") == ()
    assert not run_of([*SWITCHED, 1], net("Dropout")).findings("E002")[0].active


BY_TURNS = [1, 1, 0, 0, 0] * 8


def test_fires_when_an_evaluation_ends_train_mode_in_each_epoch():
    (finding,) = run_of(BY_TURNS, net("Dropout")).findings("E002")
    assert finding.active
    assert finding.evidence.message == (
        "net trained in eval mode in 60% of the last measured steps (threshold 34%), in which its "
        "1 dropout layers did nothing, and in train mode in the others"
    )


def test_silent_when_few_steps_are_in_eval_mode_or_the_first_was_or_nothing_drops():
    assert run_of([1, 1, 1, 0] * 10, net("Dropout")).findings("E002") == ()
    assert run_of([0, 0, 1, 1] * 10, net("Dropout")).findings("E002") == ()
    assert run_of(BY_TURNS, net("Linear")).findings("E002") == ()
    assert run_of(BY_TURNS[:20], net("Dropout")).findings("E002") == ()
