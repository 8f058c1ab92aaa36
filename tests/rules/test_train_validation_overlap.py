"""L009 train-validation-overlap: samples that are in both."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.facts import Json
from traindx.findings import Severity


def seen(share: float, **changes: Json) -> Probing:
    facts: dict[str, Json] = {"samples": 500, "training": 4000, "repeated": 0.0}
    run = Probing().number("probe.overlap", share, "val_loader")
    return run.seen("data-splits", "val_loader", **{**facts, **changes})


@pytest.mark.parametrize(("share", "severity"), [(0.05, "warning"), (1.0, "error")])
def test_fires_for_shared_samples(share: float, severity: str):
    (finding,) = seen(share).findings("L009")
    assert finding.severity is Severity(severity)
    assert f"{share:.1%} of 500 samples of `val_loader`" in finding.evidence.message


def test_fires_with_the_cause_where_both_are_one_data_set():
    (finding,) = seen(1.0, same_object=True).findings("L009")
    assert finding.evidence.cause == "Both loaders are made of the same data set."


def test_silent_for_few_shared_samples():
    assert not seen(0.005).findings("L009")
    assert not seen(1.0, samples=10).findings("L009")


def test_silent_where_copies_are_natural():
    assert not seen(0.3, repeated=0.2).findings("L009")
