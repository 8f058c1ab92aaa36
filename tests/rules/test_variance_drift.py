"""F002 variance-drift on runs written by hand."""

from __future__ import annotations

import pytest

from tests.rules.probing import Probed


def profile(
    fall: float,
    growth: float = 1.0,
    *,
    layers: int = 8,
    mended: float | None = 1.0,
    normalized: bool = False,
) -> Probed:
    run = Probed("F002", "signal-profile", gradient_fall=fall, signal_growth=growth)
    return run.seen(
        fall=fall,
        growth=growth,
        layers=[f"layer{i}" for i in range(layers)],
        gains=[[f"layer{i}", 0.58, 1.41] for i in range(layers - 1)],
        mended=mended,
        normalized=normalized,
        activations=["ReLU"],
    )


@pytest.mark.parametrize(
    ("fall", "growth", "what"),
    [(1e-5, 1.0, "gradient"), (1e5, 1.0, "gradient"), (0.1, 1e-4, "signal"), (1.0, 1e5, "signal")],
)
def test_fires_on_what_vanishes_or_explodes(fall: float, growth: float, what: str):
    (found,) = profile(fall, growth).findings()
    assert f"the {what} changes by the factor" in found.evidence.message
    assert found.evidence.fix.startswith("std = 1.41 / math.sqrt(")
    assert found.evidence.layers[0] == "layer0"


def test_fires_and_says_so_where_no_gain_mends_it():
    (found,) = profile(1e-9, mended=1e-7).findings()
    assert found.evidence.fix.startswith("No gain mends it")


@pytest.mark.parametrize("ratio", [2e-3, 0.5, 500.0])
def test_silent_within_three_decades(ratio: float):
    assert profile(ratio).findings() == []
    assert profile(1.0, ratio).findings() == []


def test_silent_on_a_gentle_slope_over_many_layers():
    assert profile(1e-4, layers=40).findings() == []


def test_silent_on_what_grows_where_normalization_holds_it():
    assert profile(1e4, normalized=True).findings() == []
    assert len(profile(1e-4, normalized=True).findings()) == 1
