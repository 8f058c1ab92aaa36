"""L016 target-scale: targets that are far from what a new network gives."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing


def seen(mean: float, std: float, output: float = 0.3, function: str = "mse_loss") -> Probing:
    return (
        Probing()
        .number("probe.comparisons", 1)
        .seen(
            "output-and-target",
            function=function,
            target_mean=mean,
            target_std=std,
            prediction_rms=output,
        )
    )


@pytest.mark.parametrize(("mean", "std"), [(2.3e5, 1.1e5), (2001.0, 10.0), (0.0, 5000.0)])
def test_fires_for_targets_in_large_units(mean: float, std: float):
    (finding,) = seen(mean, std).findings("L016")
    assert f"{mean:.4g} on average" in finding.evidence.message
    assert "y = (y - mean) / std" in finding.evidence.fix


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (22.5, 9.0), (152.0, 77.0)])
def test_silent_for_what_a_network_reaches_in_time(mean: float, std: float):
    assert not seen(mean, std).findings("L016")


def test_silent_for_a_model_that_scales_its_output():
    assert not seen(2.3e5, 1.1e5, output=2e4).findings("L016")


def test_silent_for_a_likelihood_of_an_exponential():
    assert not seen(2.3e5, 1.1e5, function="poisson_nll_loss").findings("L016")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"marks": 4, "mark": -99.0}, "4 targets of net are -99"),
        ({"unit_ratio": 1500.0}, "varies 1500 times as much as another"),
    ],
)
def test_fires_for_numbers_that_drown_the_others(changes: dict[str, float], words: str):
    told = Probing().number("probe.comparisons", 1)
    (finding,) = told.seen("output-and-target", "", function="mse_loss", **changes).findings("L016")
    assert words in finding.evidence.message


def test_silent_for_targets_of_like_units():
    told = Probing().number("probe.comparisons", 1)
    assert not told.seen("output-and-target", function="mse_loss", unit_ratio=40.0).findings("L016")
