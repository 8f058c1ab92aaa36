"""E010: running statistics written in eval mode."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
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


WRITTEN: list[Json] = ["norm.running_mean", "norm.running_var"]


def test_fires_before_training_where_a_probe_saw_them_written():
    run = Probing().number("probe.batch_mixing", 0.1)
    run.seen("batch-composition", "norm", mode="evaluation", mixing=0.1, written=WRITTEN)
    (finding,) = run.findings("E010")
    assert finding.evidence.site == ("net", "norm")
    assert finding.evidence.numbers == {"buffers": 2}
    assert finding.first_step == -1


@pytest.mark.parametrize("detail", [{"mode": "training", "written": WRITTEN}, {"written": []}])
def test_silent_before_training_where_they_are_written_in_training_only(detail: dict[str, Json]):
    run = Probing().number("probe.batch_mixing", 0.1)
    told: dict[str, Json] = {"mode": "evaluation", "mixing": 0.1, **detail}
    assert not run.seen("batch-composition", "norm", **told).findings("E010")
