"""O009: an optimizer that goes on without what it had averaged."""

from __future__ import annotations

import math

from tests.rules.recording import Recording, chain
from traindx.findings import Severity


def run_of(
    *, first: float = 0.5, before: float = 0.5, former: str = "Adam", steps: float = 100
) -> Recording:
    """A loss that fell from 2 to `before` in 100 steps and then goes on at `first`."""
    recording = Recording(chain(2))
    for step in range(130):
        goes_on = step >= 100
        level = first if goes_on else before + (2.0 - before) * math.exp(-step / 5)
        recording.scalar(step, "loss", level + 0.02 * (-1) ** step)
        recording.scalar(step, "lr", 0.01, "Adam#2" if goes_on else "Adam", model="")
        if step == 101:
            recording.scalar(step, "optimizer.forgotten", steps, "Adam#2", model=former)
        recording.measured(step)
    return recording


def test_fires_when_a_training_goes_on_at_its_level_with_a_new_optimizer():
    (finding,) = run_of().findings("O009")
    assert (finding.severity, finding.active) == (Severity.WARNING, True)
    assert finding.evidence.site == ("", "Adam#2")
    assert finding.first_step == 101
    assert "without the averages of the 100 steps" in finding.evidence.message


def test_fires_when_a_file_holds_a_state_that_nobody_was_given():
    (finding,) = run_of(former="", steps=0).findings("O009")
    assert "a file that was read holds the state" in finding.evidence.message


def test_silent_when_another_task_begins_at_another_level():
    assert run_of(first=1.5).findings("O009") == ()


def test_silent_when_the_first_training_had_learned_nothing():
    assert run_of(before=1.9, first=1.9).findings("O009") == ()


def test_silent_when_nothing_was_forgotten():
    recording = run_of()
    recording.items = [i for i in recording.items if "forgotten" not in getattr(i, "quantity", "")]
    assert recording.findings("O009") == ()


def test_silent_when_each_of_many_rounds_begins_with_weights_that_are_loaded():
    recording = run_of()
    for client in range(3, 6):
        recording.scalar(101, "optimizer.forgotten", 10, f"Adam#{client}", model=f"Adam#{client}")
    recording.measured(130)
    assert not [finding for finding in recording.findings("O009") if finding.active]
