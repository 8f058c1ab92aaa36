"""O010 decay-on-norms: strong weight decay of normalization layers."""

from __future__ import annotations

import math

import pytest

from tests.rules.before_training import Probing
from traindx.facts import Json
from traindx.findings import Severity


def seen(half_life: float, num_norms: int = 2) -> Probing:
    facts: dict[str, Json] = {"norms": ["bn.weight"], "num_norms": num_norms, "biases": 1}
    run = Probing().number("probe.decay_half_life", half_life)
    return run.seen("weight-decay", "", **facts)


@pytest.mark.parametrize(("steps", "severity"), [(69, "warning"), (2000, "info")])
def test_fires_for_strong_decay(steps: float, severity: str):
    (finding,) = seen(steps).findings("O010")
    assert finding.severity is Severity(severity)
    assert f"every {steps} steps, first `bn.weight`" in finding.evidence.message


def test_silent_for_usual_decay():
    assert not seen(13_863).findings("O010")


def test_silent_where_no_normalization_decays():
    assert not seen(math.inf, num_norms=0).findings("O010")
