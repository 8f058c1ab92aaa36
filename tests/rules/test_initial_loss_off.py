"""L001 initial-loss-off: the loss before training beside that of a guess."""

from __future__ import annotations

import math

import pytest

from tests.rules.recording import Recording
from traindx.findings import Severity
from traindx.records import RUN, Event, EventKind

CHANCE = math.log(10)
PREFLIGHT = Event(-1, EventKind.STARTED, RUN, {"kind": "preflight"})


def probed(
    loss: float, *, weighted: bool = False, chance: float = CHANCE, one_class: bool = False
) -> Recording:
    """A preflight that has seen this loss."""
    recording = Recording()
    recording.items.append(PREFLIGHT)
    recording.scalar(-1, "probe.initial_loss", loss)
    recording.scalar(-1, "probe.chance_loss", chance)
    recording.scalar(-1, "probe.logit_std", 27.9)
    detail = {"probe": "loss-at-chance", "classes": 10, "weighted": weighted}
    detail["one_class"] = one_class
    recording.event(-1, EventKind.OBSERVED, "net", **detail)
    recording.measured(-1)
    return recording


@pytest.mark.parametrize("loss", [38.39, math.inf, math.nan])
def test_fires_for_a_loss_far_above_chance(loss: float):
    (finding,) = probed(loss).findings("L001")
    assert (finding.severity, finding.evidence.site) == (Severity.WARNING, ("net", ""))
    assert "a guess over 10 classes would have 2.303" in finding.evidence.message


def test_fires_as_information_for_a_loss_far_below_chance():
    (finding,) = probed(0.4).findings("L001")
    assert finding.severity is Severity.INFO
    assert finding.evidence.numbers == {"initial_loss": 0.4, "chance_loss": CHANCE}


def test_fires_where_the_threshold_is_set_closer():
    assert probed(CHANCE + 0.3).findings("L001", above=0.2)


@pytest.mark.parametrize("loss", [CHANCE, CHANCE + 0.9, CHANCE - 0.4])
def test_silent_near_chance(loss: float):
    assert probed(loss).findings("L001") == ()


def test_silent_below_chance_where_all_targets_are_one_class_and_not_above():
    assert probed(0.4, one_class=True).findings("L001") == ()
    assert probed(38.0, one_class=True).findings("L001")


def test_silent_with_class_weights():
    assert probed(38.0, weighted=True).findings("L001") == ()


def test_silent_and_not_evaluated_in_a_training():
    recording = Recording()
    recording.scalar(0, "loss", 38.0)
    recording.measured(0)
    verdict = recording.verdict("L001")
    assert [(entry.code, entry.reason) for entry in verdict.not_evaluated] == [
        ("L001", "needs preflight")
    ]


def test_silent_with_the_reason_of_its_probe():
    recording = Recording()
    recording.items.append(PREFLIGHT)
    detail = {"name": "loss-at-chance", "writes": ["probe.initial_loss"], "reason": "no loss"}
    recording.event(-1, EventKind.PROBE, **detail)
    recording.measured(-1)
    (entry,) = recording.verdict("L001").not_evaluated
    assert entry.reason == "loss-at-chance: no loss"
