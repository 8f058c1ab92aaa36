"""N014: replicas with statistics of their own."""

from __future__ import annotations

from tests.rules.recording import Recording, chain
from traindx.facts import Json
from traindx.findings import Severity
from traindx.records import EventKind


def run_of(**detail: Json) -> Recording:
    recording = Recording(chain(2))
    for step in range(10):
        recording.scalar(step, "loss", 1.0)
        recording.measured(step)
    told: dict[str, Json] = {
        "of": "net", "replica": True, "parameters": 4, "equal": 4, "norms": 1, "gap": 0.7,
        "norm": "bn",
    }  # fmt: skip
    recording.event(9, EventKind.COPY, "copy", **(told | detail))
    recording.ended(10)
    return recording


def test_fires_when_replicas_average_unlike_shards():
    (finding,) = run_of().findings("N014")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "")
    assert finding.evidence.message == (
        "net and copy have the same weights, but running statistics that lie 0.70 standard "
        "deviations apart at `bn` (threshold 0.5)"
    )
    assert run_of().findings("E006") == ()


def test_is_an_error_when_they_are_far_apart():
    (finding,) = run_of(gap=1.5).findings("N014")
    assert finding.severity is Severity.ERROR


def test_silent_on_shards_of_the_same_data():
    assert run_of(gap=0.4).findings("N014") == ()


def test_silent_on_models_with_other_weights_and_on_copies():
    assert run_of(equal=3).findings("N014") == ()
    assert run_of(replica=False).findings("N014") == ()
