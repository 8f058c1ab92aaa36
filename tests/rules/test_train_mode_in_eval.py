"""E001: models evaluated while they act as in training."""

from __future__ import annotations

import pytest

from tests.rules.recording import Recording, chain
from traindx.facts import Json
from traindx.findings import Severity
from traindx.records import RUN, Event, EventKind


def run_of(
    *passes: tuple[int, dict[str, Json]], steps: int = 60, trained: int | None = None
) -> Recording:
    """A run of `steps` steps, of which the first `trained` train the model, with these passes."""
    recording = Recording(chain(2))
    for step in range(steps):
        model = "net" if trained is None or step < trained else "student"
        recording.scalar(step, "loss", 1.0, model=model)
        recording.scalar(step, "mode.training", 1, model=model)
        for before, detail in passes:
            if before == step:
                recording.event(step, EventKind.EVALUATION, "net", **detail)
        recording.measured(step)
    return recording


ACTING: dict[str, Json] = {"forwards": 5, "training": True, "dropping": 2, "first": "1"}
CLEAN: dict[str, Json] = {"forwards": 5, "training": False}
PARTLY: dict[str, Json] = {"forwards": 5, "training": False, "batch_norms": 1, "first": "0"}


def test_fires_when_every_evaluation_was_in_train_mode():
    (finding,) = run_of((20, ACTING), (40, ACTING)).findings("E001")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "")
    assert finding.evidence.message == (
        "in 10 forward passes without gradient, all that there were, 2 dropout and 0 BatchNorm "
        "layers of net acted as in training, first `1`"
    )
    assert finding.evidence.fix.startswith("net.eval()")


def test_fires_when_a_part_alone_was_left_in_train_mode():
    (finding,) = run_of((20, PARTLY)).findings("E001")
    assert "1 BatchNorm layers" in finding.evidence.message


def test_silent_when_one_evaluation_was_as_it_should_be():
    """Statistics were estimated in train mode before it."""
    assert run_of((20, ACTING), (20, CLEAN)).findings("E001") == ()


def test_silent_on_dropout_that_was_switched_on_by_itself():
    sampling: dict[str, Json] = {"forwards": 30, "training": False, "dropping": 2, "first": "1"}
    assert run_of((20, sampling)).findings("E001") == ()
    assert len(run_of((20, sampling), (40, ACTING)).findings("E001")) == 1


def test_silent_before_training_has_begun():
    assert run_of((0, ACTING)).findings("E001") == ()


def test_silent_when_passes_belong_to_most_steps():
    every_other = [(step, ACTING) for step in range(2, 60, 2)]
    assert run_of(*every_other).findings("E001") == ()
    assert len(run_of(*every_other).findings("E001", share=0.6)) == 1


def test_fires_for_a_teacher_left_in_train_mode():
    passes = [(step, ACTING) for step in range(30, 60)]
    (finding,) = run_of(*passes, trained=30).findings("E001")
    assert "ended 30 steps before" in finding.evidence.cause


@pytest.mark.parametrize("trained", [30, 59])
def test_silent_on_a_teacher_in_eval_mode_and_on_one_that_has_just_been_trained(trained: int):
    passes = [(step, CLEAN if trained == 30 else ACTING) for step in range(30, 60)]
    assert run_of(*passes, trained=trained).findings("E001") == ()


def test_silent_in_a_gan():
    recording = run_of((20, ACTING))
    recording.items.insert(0, Event(0, EventKind.STARTED, RUN, {"contexts": ["gan"]}))
    assert recording.findings("E001") == ()


ONE: dict[str, Json] = {"forwards": 1, "training": False}
OTHERS: dict[str, Json] = {**ACTING, "last": True}


def test_fires_when_every_evaluation_leaves_eval_mode_after_one_pass():
    (finding,) = run_of((20, ONE), (20, OTHERS), (40, ONE), (40, OTHERS)).findings("E001")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.message == (
        "in each of 2 evaluations net was in eval mode for one forward pass, and for the others, "
        "10 together, 2 dropout and 0 BatchNorm layers acted as in training, first `1`"
    )


@pytest.mark.parametrize(
    "passes",
    [
        ((20, ONE), (20, OTHERS)),  # one may end with statistics estimated for use
        ((20, ONE), (20, OTHERS), (40, CLEAN)),
        ((20, CLEAN), (20, OTHERS), (40, CLEAN), (40, OTHERS)),  # whole sets, then statistics
        ((20, ONE), (20, ACTING), (40, ONE), (40, ACTING)),  # the last pass was in eval mode
        ((20, OTHERS), (20, ONE), (40, OTHERS), (40, ONE)),
    ],
)
def test_silent_where_passes_in_train_mode_estimate_statistics(
    passes: tuple[tuple[int, dict[str, Json]], ...],
):
    assert run_of(*passes).findings("E001") == ()
