"""E014: checkpoints that are passed over, on runs written by hand."""

from __future__ import annotations

import pytest

from tests.rules.recording import Recording, chain, failures
from traindx.facts import Json
from traindx.findings import Severity
from traindx.records import Event, EventKind, Site

PREFIXED: dict[str, Json] = {
    "used": 0,
    "loaded": 0,
    "missing": ["0.weight"],
    "unexpected": ["module.0.weight"],
    "fits": 4,
    "rename": "-module.",
}


def run_of(*details: dict[str, Json], model: str = "net") -> Recording:
    """A run whose model was given these states before its first step."""
    recording = Recording(chain(2))
    for detail in details:
        told: dict[str, Json] = {
            "at": 0,
            "parameters": 4,
            "loaded": 4,
            "given": 4,
            "used": 4,
            "same": 0,
            "missing": [],
            "unexpected": [],
            "fits": 0,
            "rename": "",
        }
        told |= detail
        site = Site(model, str(told.pop("fqn", "")))
        recording.items.append(Event(0, EventKind.LOADED, site, told))
    for step in range(10):
        recording.scalar(step, "loss", 1.0)
        recording.measured(step)
    recording.ended(10)
    return recording


def test_fires_when_all_names_have_a_prefix():
    (finding,) = run_of(PREFIXED).findings("E014")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "")
    assert finding.evidence.message == (
        "of 4 tensors loaded into net, 0 were used: the checkpoint has `module.0.weight`, the "
        "model `0.weight`"
    )
    assert finding.evidence.cause == "Its names begin with `module.`; without it 4 more fit."
    assert finding.evidence.fix == (
        "net.load_state_dict({name.removeprefix('module.'): value for name, value in "
        "state.items()})"
    )


@pytest.mark.parametrize(
    ("rename", "cause", "fix"),
    [
        ("+body.", "Its names lack the `body.` that the model's begin with", "'body.' + name"),
        ("-_orig_mod", "Its names differ by `_orig_mod`", "print(net.load_state_dict("),
        ("", "No name in it is a name of the model's", "print(net.load_state_dict("),
    ],
)
def test_the_cause_is_how_the_names_differ(rename: str, cause: str, fix: str):
    (finding,) = run_of(PREFIXED | {"rename": rename}).findings("E014")
    assert finding.evidence.cause.startswith(cause)
    assert fix in finding.evidence.fix


def test_fires_when_what_is_loaded_is_empty():
    (finding,) = run_of({"given": 0, "used": 0, "loaded": 0}).findings("E014")
    assert "is empty: its 4 parameters are as they were" in finding.evidence.message


def test_fires_when_as_much_would_fit_as_was_loaded():
    (finding,) = run_of({"used": 2, "loaded": 2, "fits": 2, "rename": "-a."}).findings("E014")
    assert finding.severity is Severity.ERROR


def test_a_small_part_of_both_is_information():
    (finding,) = run_of({"given": 10, "used": 1, "loaded": 1}).findings("E014")
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize(
    "detail",
    [
        {},
        {"used": 3, "loaded": 3, "fits": 1, "rename": "-a."},
        {"given": 40, "used": 4},  # an encoder out of a whole model
        {"given": 1, "used": 1, "loaded": 1},  # a head or an adapter for a whole model
        {"parameters": 40, "given": 6, "used": 4, "loaded": 4},
    ],
)
def test_silent_where_one_of_both_is_mostly_used(detail: dict[str, Json]):
    assert run_of(detail).findings("E014") == ()


def test_silent_when_a_second_load_at_that_time_gives_something():
    assert run_of(PREFIXED, {}).findings("E014") == ()
    assert run_of({}, PREFIXED).findings("E014") == ()
    assert run_of(PREFIXED, {"fqn": "0"}).findings("E014") == ()
    assert run_of(PREFIXED | {"fqn": "0.body"}, {"fqn": "0"}).findings("E014") == ()


def test_another_part_or_another_time_is_no_second_load():
    assert len(run_of(PREFIXED | {"fqn": "0"}, {"fqn": "1"}).findings("E014")) == 1
    assert len(run_of({}, PREFIXED | {"at": 5}).findings("E014")) == 1


def test_a_model_that_is_not_trained_is_named_as_a_part_of_the_run():
    (finding,) = run_of(PREFIXED, model="teacher").findings("E014")
    assert finding.evidence.site == ("", "teacher")
    assert "loaded into teacher" in finding.evidence.message


def test_fires_when_nothing_but_its_own_tensors_is_loaded_before_training():
    (finding,) = run_of({"same": 4}).findings("E014")
    assert finding.severity is Severity.WARNING
    assert "all 4 tensors loaded into net are its own" in finding.evidence.message


def test_own_tensors_after_training_are_another_rules():
    run = run_of({"same": 4, "at": 5})
    assert run.findings("E014") == ()
    (finding,) = run.findings("E006")
    assert finding.severity is Severity.WARNING
    assert "after 5 steps, 4 tensors, are its own of that moment" in finding.evidence.message
    assert finding.evidence.fix == "best = copy.deepcopy(net.state_dict())"


@pytest.mark.parametrize("detail", [{"same": 3, "at": 5}, {"same": 0, "at": 5}])
def test_copies_are_restored_in_silence(detail: dict[str, Json]):
    assert run_of(detail).findings("E006", "E014") == ()


def test_not_judged_where_nothing_was_loaded():
    verdict = run_of().verdict("E014")
    assert failures(verdict) == []
    assert [entry.reason for entry in verdict.not_evaluated] == ["nothing was loaded into a model"]


def overwritten(share: float) -> Recording:
    recording = Recording(chain(2))
    told = {"at": 0, "parameters": 4, "loaded": 4, "given": 4, "used": 4, "same": 0, "fits": 0}
    recording.event(0, EventKind.LOADED, "net", **told, rename="", missing=[], unexpected=[])
    recording.scalar(0, "load.overwritten", share)
    recording.scalar(0, "loss", 1.0)
    recording.measured(0)
    return recording


def test_fires_when_weights_are_initialized_after_loading():
    (finding,) = overwritten(1.0).findings("E014")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "")
    assert finding.evidence.message.startswith("100% of the weights that were loaded into net")


def test_silent_when_a_new_head_follows_what_was_loaded():
    assert overwritten(0.5).findings("E014") == ()
