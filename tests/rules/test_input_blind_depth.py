"""F001: whether anything of the input is left at the end of a network."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.rules.recording import Recording, chain, evaluated, linear, weight
from traindx.facts import ModelFacts, ModuleFacts
from traindx.findings import Severity
from traindx.records import Point, Record, Site, TensorStats


def run_of(
    shares: dict[str, float],
    *,
    model: ModelFacts | None = None,
    batch: int = 64,
    steps: int = 3,
    zeros: tuple[str, ...] = (),
) -> Recording:
    """A run in which the outputs of these modules have these shares at every step."""
    recording = Recording(model or chain(len(shares)))
    for step in range(steps):
        add_step(recording, step, shares, batch, zeros)
    return recording


def add_step(
    recording: Recording,
    step: int,
    shares: dict[str, float],
    batch: int = 64,
    zeros: tuple[str, ...] = (),
) -> None:
    recording.scalar(step, "batch.size", batch)
    for fqn, share in shares.items():
        recording.scalar(step, "output.batch_share", math.nan if fqn in zeros else share, fqn)
        size = 0.0 if fqn in zeros else 1.0
        stats = TensorStats(100, 0.0, 100 * size, -size, size)
        recording.items.append(Record(step, Site("net", fqn), Point.OUTPUT, stats))
    recording.measured(step)


def falling(*shares: float) -> dict[str, float]:
    return {str(i): share for i, share in enumerate(shares)}


def test_fires_where_nothing_of_the_input_is_left():
    (finding,) = run_of(falling(0.8, 1e-3, 1e-7, 1e-9, 1e-9)).findings("F001")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "0")
    assert finding.evidence.profiles == ("output.batch_share",)
    assert len(finding.evidence.layers) > 1
    assert "" not in finding.evidence.layers  # what holds the layers is none
    assert finding.evidence.numbers["share"] == 1e-7
    assert finding.evidence.message == (
        "the output of net hardly depends on its input: 0.8 of the mean square differs between "
        "samples at `0`, 1e-07 at `2` and at most 1e-07 at every output from there to the end (3 "
        "in all; threshold 1e-06)"
    )


def test_fires_on_outputs_that_are_exactly_the_same():
    assert len(run_of(falling(0.8, 0.1, 0.0, 0.0)).findings("F001")) == 1


def test_fires_on_five_layers_that_each_leave_a_tenth():
    shares = falling(0.9, 0.09, 0.009, 9e-4, 9e-5, 8e-6, 8e-6)
    (finding,) = run_of(shares).findings("F001")
    assert finding.evidence.numbers["share"] == 8e-6
    # The same loss at one stroke is something else: an embedding of a large mean, perhaps.
    assert run_of(falling(0.9, 0.9, 0.9, 0.9, 0.9, 8e-6, 8e-6)).findings("F001") == ()


@pytest.mark.parametrize("shares", [(0.9, 0.09, 0.009, 9e-4, 9e-5, 9e-5), (0.9,) * 6])
def test_silent_on_fewer_cuts(shares: tuple[float, ...]):
    assert run_of(falling(*shares)).findings("F001") == ()


def test_silent_just_over_the_threshold():
    assert run_of(falling(0.8, 0.1, 1.01e-6, 1.01e-6)).findings("F001") == ()
    assert len(run_of(falling(0.8, 0.1, 0.99e-6, 0.99e-6)).findings("F001")) == 1


def test_silent_when_only_the_output_layer_starts_blind():
    assert run_of(falling(0.8, 0.7, 0.6, 0.0)).findings("F001") == ()


def test_silent_when_something_behind_sees_the_input_again():
    """A branch that starts at zero, with a way past it."""
    assert run_of(falling(0.8, 0.1, 1e-9, 0.5)).findings("F001") == ()


def test_silent_when_a_skip_connection_carries_the_input_past_the_layers_of_a_block():
    """A container's own output comes after those of the layers in it."""
    modules = (
        ModuleFacts("", "Net", 0, 1),
        linear("stem", 1),
        ModuleFacts("block", "Block", 2, 1),
        linear("block.a", 3),
        linear("block.b", 4),
    )
    params = tuple(weight(fqn) for fqn in ("stem", "block.a", "block.b"))
    model = ModelFacts("net", "Net", modules, params)
    blind = {"stem": 0.8, "block.a": 1e-8, "block.b": 1e-9}
    assert run_of({**blind, "block": 0.7}, model=model).findings("F001") == ()
    assert len(run_of({**blind, "block": 1e-9}, model=model).findings("F001")) == 1


def test_a_block_with_a_part_that_is_never_called_stands_where_it_returns():
    modules = (
        ModuleFacts("", "Net", 0, 1),
        ModuleFacts("stem", "Block", 1, 1),
        linear("stem.used", 2),
        linear("stem.unused", None),
        linear("a", 3),
        linear("b", 4),
    )
    model = ModelFacts("net", "Net", modules, tuple(weight(m.fqn) for m in modules[2:]))
    shares = {"stem": 0.8, "stem.used": 0.8, "a": 1e-8, "b": 1e-8}
    (finding,) = run_of(shares, model=model).findings("F001")
    assert finding.evidence.site.fqn == "stem.used"


def test_silent_on_inputs_that_are_all_alike():
    assert run_of(falling(0.0, 0.0, 0.0, 0.0)).findings("F001") == ()
    assert run_of(falling(9e-4, 1e-7, 1e-9, 1e-9)).findings("F001") == ()


def test_silent_on_positions_and_tokens_in_the_middle_of_the_way():
    assert run_of(falling(0.8, 0.0, 0.0, 0.6, 0.5)).findings("F001") == ()


def test_silent_on_layers_of_zeros_since_dead_units_are_told_elsewhere():
    shares = falling(0.8, 0.0, 0.0, 0.0)
    assert run_of(shares, zeros=("1",)).findings("F001") == ()
    assert len(run_of(shares, zeros=("2",)).findings("F001")) == 1


def test_silent_until_the_third_measured_step_with_shares():
    shares = falling(0.8, 1e-8, 1e-9, 1e-9)
    recording = run_of(shares, steps=2)
    for step in range(2, 5):  # measured without shares: nothing new was seen
        recording.scalar(step, "batch.size", 64)
        recording.measured(step)
    assert recording.findings("F001") == ()
    add_step(recording, 5, shares)
    assert len(recording.findings("F001")) == 1


def test_silent_when_training_soon_mends_it():
    recording = run_of(falling(0.8, 1e-8, 1e-9, 1e-9), steps=2)
    add_step(recording, 2, falling(0.8, 0.1, 0.1, 0.1))
    add_step(recording, 3, falling(0.8, 1e-8, 1e-9, 1e-9))
    assert recording.findings("F001") == ()


def test_a_finding_clears_once_the_input_shows_again():
    recording = run_of(falling(0.8, 1e-8, 1e-9, 1e-9), steps=3)
    for step in range(3, 6):
        add_step(recording, step, falling(0.8, 0.1, 0.1, 0.1))
    (finding,) = recording.findings("F001")
    assert not finding.active


def test_three_steps_of_small_batches_hold_enough_samples_together():
    shares = falling(0.8, 1e-8, 1e-9, 1e-9)
    assert len(run_of(shares, batch=22).findings("F001")) == 1
    verdict = run_of(shares, batch=21).verdict("F001")
    assert not evaluated(verdict, "F001")
    reason = "batches of 21 samples are too small to compare samples (at least 22)"
    assert verdict.not_evaluated[0].reason == reason


def test_small_batches_after_large_ones_are_passed_over():
    recording = run_of(falling(0.8, 0.5, 0.5, 0.5))
    for step in range(3, 9):
        add_step(recording, step, falling(0.8, 1e-8, 1e-9, 1e-9), batch=8)
    assert recording.findings("F001") == ()


def test_a_layer_measured_at_another_step_is_left_out():
    """A head that is used now and then says nothing of the steps without it."""
    model = replace(chain(4), modules=(*chain(4).modules, linear("head", 9)))
    recording = Recording(model)
    add_step(recording, 0, {**falling(0.8, 0.5, 0.5, 0.5), "head": 0.5})
    for step in range(1, 4):
        add_step(recording, step, falling(0.8, 1e-8, 1e-9, 1e-9))
    assert len(recording.findings("F001")) == 1
