"""E010: running statistics written in eval mode."""

from __future__ import annotations

from tests.rules.recording import Recording, chain
from traindx.facts import Json
from traindx.records import EventKind


def run_of(**detail: Json) -> Recording:
    recording = Recording(chain(2))
    for step in range(10):
        recording.scalar(step, "loss", 1.0)
        recording.scalar(step, "mode.training", 1)
        recording.measured(step)
    told: dict[str, Json] = {
        "forwards": 3,
        "training": False,
        "written": ["1.running_mean", "1.running_var"],
    }
    recording.event(9, EventKind.EVALUATION, "net", **(told | detail))
    recording.ended(10)
    return recording


def test_fires_when_a_layer_writes_its_statistics_in_eval_mode():
    (finding,) = run_of().findings("E010")
    assert finding.evidence.site == ("net", "1")
    assert finding.evidence.message == (
        "2 running statistics of net were written in forward passes in eval mode, first "
        "`1.running_mean`"
    )


def test_silent_when_nothing_is_written():
    assert run_of(written=[]).findings("E010") == ()


def test_silent_in_train_mode_which_is_told_by_another_rule():
    assert run_of(training=True).findings("E010") == ()
    assert run_of(batch_norms=1).findings("E010") == ()
