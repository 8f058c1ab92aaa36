"""N006: normalizations along the wrong axis."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.recording import Recording, batchnorm_net, chain
from traindx.facts import Json, ModuleFacts
from traindx.findings import Severity


def of_batchnorm(given: int) -> Recording:
    recording = Recording(batchnorm_net("bn"))
    recording.scalar(0, "norm.feature_axis", given, "bn")
    recording.scalar(0, "norm.own_axis", 1, "bn")
    recording.measured(0)
    return recording


def of_layernorm(given: int, own: int) -> Recording:
    options: dict[str, Json] = {"eps": 1e-5, "normalized_shape": [40]}
    layer = ModuleFacts("ln", "LayerNorm", 5, 1, options)
    recording = Recording(replace(chain(2), modules=(*chain(2).modules, layer)))
    recording.scalar(0, "norm.feature_axis", given, "ln")
    recording.scalar(0, "norm.own_axis", own, "ln")
    recording.measured(0)
    return recording


def test_fires_when_batchnorm_takes_positions_for_features():
    (finding,) = of_batchnorm(2).findings("N006")
    assert finding.severity is Severity.ERROR
    assert finding.evidence.site == ("net", "bn")
    assert "normalizes each entry of axis 1" in finding.evidence.message
    assert finding.evidence.fix.startswith("bn(x.transpose(2, 1)).transpose(2, 1)")


def test_fires_when_layernorm_leaves_the_features_out():
    (finding,) = of_layernorm(given=1, own=2).findings("N006")
    assert finding.severity is Severity.WARNING
    assert "normalizes from axis 2 on" in finding.evidence.message


@pytest.mark.parametrize(("given", "own"), [(2, 2), (2, 1), (1, 1)])
def test_silent_when_layernorm_includes_the_features(given: int, own: int):
    assert of_layernorm(given, own).findings("N006") == ()


def test_silent_when_batchnorm_has_its_features_on_axis_1():
    assert of_batchnorm(1).findings("N006") == ()
