"""E003: random numbers drawn in eval mode."""

from __future__ import annotations

from tests.rules.recording import Recording, chain
from traindx.facts import Json
from traindx.records import EventKind


def run_of(*details: dict[str, Json]) -> Recording:
    recording = Recording(chain(2))
    for step in range(10):
        recording.scalar(step, "loss", 1.0)
        recording.scalar(step, "mode.training", 1)
        if step == 5:
            for detail in details:
                recording.event(step, EventKind.EVALUATION, "net", **detail)
        recording.measured(step)
    return recording


DRAWING: dict[str, Json] = {"forwards": 4, "training": False, "drawing": 4}


def test_fires_when_every_pass_in_eval_mode_draws():
    (finding,) = run_of(DRAWING).findings("E003")
    assert finding.evidence.site == ("net", "")
    assert finding.evidence.message.startswith("all 4 forward passes of net in eval mode drew")
    assert "training=self.training" in finding.evidence.fix


def test_silent_when_some_pass_draws_nothing():
    assert run_of(DRAWING | {"drawing": 3}).findings("E003") == ()
    assert run_of(DRAWING, {"forwards": 1, "training": False}).findings("E003") == ()


def test_silent_where_a_dropout_module_is_in_train_mode():
    """That is E001's to tell."""
    assert run_of(DRAWING | {"dropping": 1, "first": "1"}).findings("E003") == ()


def test_silent_in_train_mode_and_on_a_single_pass():
    assert run_of(DRAWING | {"training": True}).findings("E003") == ()
    assert run_of({"forwards": 1, "training": False, "drawing": 1}).findings("E003") == ()
