"""N017: frozen statistics that do not fit the data."""

from __future__ import annotations

import math

from tests.rules.recording import Recording, batchnorm_net
from traindx.findings import Severity


def run_of(*gaps: float, training: int = 0) -> Recording:
    recording = Recording(batchnorm_net("bn1", "bn2"))
    for step, gap in enumerate(gaps):
        for fqn, own in (("bn1", 0.4), ("bn2", gap)):
            recording.scalar(step, "norm.training", training, fqn)
            recording.scalar(step, "norm.frozen_gap", own, fqn)
        recording.measured(step)
    return recording


def test_fires_when_the_data_are_prepared_otherwise():
    (finding,) = run_of(2.5, 2.5, 2.5).findings("N017")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site == ("net", "bn2")
    assert finding.evidence.message == (
        "what 1 frozen normalization layers make of a batch is off by up to 2.5 standard "
        "deviations, at `bn2` (threshold 2)"
    )


def test_is_an_error_when_they_are_far():
    (finding,) = run_of(80.0).findings("N017")
    assert finding.severity is Severity.ERROR


def test_silent_on_data_of_another_kind_and_on_one_odd_batch():
    assert run_of(1.2, 1.2, 1.2).findings("N017") == ()
    (finding,) = run_of(9.0, 1.0, 1.0).findings("N017")
    assert not finding.active
    assert run_of(math.nan, math.nan).findings("N017") == ()


def test_silent_on_layers_that_have_gone_back_to_train_mode():
    assert run_of(9.0, training=1).findings("N017") == ()
