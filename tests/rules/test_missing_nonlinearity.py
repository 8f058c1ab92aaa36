"""S001 missing-nonlinearity: layers that are one affine map."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.facts import Json
from traindx.findings import Severity
from traindx.rules.catalog import find
from traindx.rules.engine import judge

STACK: dict[str, Json] = {
    "layers": ["0", "1", "2"], "stacked": 2, "narrowest": 32, "given": 20, "made": 10,
}  # fmt: skip


def seen(curvature: float, **changes: Json) -> Probing:
    run = Probing().number("probe.curvature", curvature)
    return run.seen("affine-test", "2", **{**STACK, **changes})


def test_fires_for_layers_without_a_bend():
    (finding,) = seen(4e-16).findings("S001")
    assert "3 layers up to `2` of net are together one affine map" in finding.evidence.message
    assert finding.evidence.layers == ("0", "1", "2")


def test_what_keeps_a_few_samples_from_being_learned_is_an_error_and_comes_first():
    run = seen(4e-16).number("probe.overfit_fraction", 0.6)
    verdict = judge(run.items, [find("L004"), find("S001")])
    assert [finding.code for finding in verdict.findings] == ["S001", "L004"]
    assert verdict.findings[0].severity is Severity.ERROR
    assert verdict.findings[1].caused_by == (1,)


def test_a_linear_model_that_learns_is_warned_of():
    (finding,) = seen(4e-16).number("probe.overfit_fraction", 0.01).findings("S001")
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize("curvature", [1e-6, 0.3, 2.0])
def test_silent_for_a_network_that_bends(curvature: float):
    assert not seen(curvature).findings("S001")


@pytest.mark.parametrize("changes", [{"stacked": 0}, {"narrowest": 4}])
def test_silent_for_one_layer_and_for_a_factorization(changes: dict[str, Json]):
    assert not seen(0.0, **changes).findings("S001")
