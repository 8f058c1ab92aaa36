"""The first layer as pictures: each scaled by itself, and arranged in rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.report.figures.test_png import decoded
from traindx.records import Event, EventKind, Site, Vector
from traindx.report.figures.canvas import Canvas
from traindx.report.figures.filters import (
    QUANTITY,
    filters_figure,
    first_layers,
    reading_words,
    shown_words,
)
from traindx.run import Run

SITE = Site("net", "conv1")


def run_of(weights: np.ndarray, step: int = -1, **changed: Any) -> Run:
    """A run that holds these weights [units, channels, height, width]."""
    detail = {
        "probe": "first-weights", "kind": "filters", "layer": "Conv2d",
        "shape": [*weights.shape], "units": weights.shape[0], "inputs": weights.shape[1],
        "size": [*weights.shape[2:]], **changed,
    }  # fmt: skip
    vector = Vector(step, QUANTITY, SITE, tuple(weights.ravel().tolist()))
    return Run([vector, Event(step, EventKind.OBSERVED, SITE, detail)])


def drawn(run: Run) -> np.ndarray:
    (layer,) = first_layers(run)
    (trace,) = filters_figure(Canvas(run), layer)["data"]
    return decoded(trace["source"])


def test_each_filter_goes_from_black_to_white_by_itself() -> None:
    weights = np.zeros((2, 1, 1, 2))
    weights[0, 0, 0] = -1, 3
    weights[1, 0, 0] = 1e-9, 0
    pixels = drawn(run_of(weights))
    ends = pixels[0, [0, 55, 59, -1]]  # of two pictures that are 56 wide, 3 apart
    assert ends[:, 0].tolist() == [0, 255, 255, 0]
    assert (ends[:, 3] == 255).all()
    between = pixels[pixels[..., 3] == 0]
    assert len(between)  # the page shines through


def test_three_channels_are_red_green_and_blue() -> None:
    weights = np.zeros((1, 3, 1, 1)) + np.array([0.0, 0.5, 1.0]).reshape(1, 3, 1, 1)
    assert drawn(run_of(weights))[0, 0].tolist() == [0, 128, 255, 255]


def test_flat_filters_are_gray_and_broken_weights_orange() -> None:
    weights = np.full((2, 1, 1, 2), 0.3)
    weights[1, 0, 0] = np.nan, 1
    pixels = drawn(run_of(weights))
    assert pixels[0, 0, :3].tolist() == [128, 128, 128]
    assert pixels[0, 59, :3].tolist() == [232, 89, 12]


def test_several_channels_stand_side_by_side() -> None:
    run = run_of(np.random.default_rng(0).normal(size=(4, 4, 3, 3)), kind="channels", inputs=12)
    height, width, _ = drawn(run).shape
    assert width > 3.5 * height  # two filters of four channels a row
    (layer,) = first_layers(run)
    assert "Of 12 inputs, the first 4." in [*shown_words(layer)]


def test_rows_of_plain_numbers_are_a_heatmap_of_their_values() -> None:
    weights = np.arange(12.0).reshape(3, 1, 1, 4) - 5
    run = run_of(weights, kind="matrix", layer="Linear", inputs=4)
    (layer,) = first_layers(run)
    (trace,) = filters_figure(Canvas(run), layer)["data"]
    assert trace["z"] == weights[:, 0, 0].tolist()
    assert trace["zmin"] == -trace["zmax"]


def test_what_is_left_out_is_said() -> None:
    run = run_of(np.ones((2, 3, 4, 4)), units=96, size=[64, 64])
    (layer,) = first_layers(run)
    said = " ".join(shown_words(layer))
    assert "the first 2 of 96 units" in said
    assert "averaged down from 64 x 64" in said


def test_before_training_noise_is_as_it_should_be_and_at_the_end_it_is_not() -> None:
    (before,), (after,) = (first_layers(run_of(np.ones((1, 1, 2, 2)), step)) for step in (-1, 99))
    assert "noise by design" in reading_words(before)[0]
    assert "too little regularization" in reading_words(after)[1]


def test_of_several_looks_the_last_one_counts() -> None:
    run = run_of(np.ones((1, 1, 2, 2)))
    again = run_of(np.zeros((1, 1, 2, 2)), step=7)
    run.add(again.vectors(QUANTITY)[SITE][0])
    run.add(again.events(EventKind.OBSERVED)[0])
    (layer,) = first_layers(run)
    assert layer.step == 7


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": [1, 3, 5, 5]},
        {"shape": [2, 3, 2]},
        {"shape": "many"},
        {"shape": [-2, 3, -2, 2]},
        {"shape": [2, 3, 2, True]},
        {"kind": "script"},
        {"units": None},
        {"size": [0, 2]},
        {"probe": "another"},
    ],
)
def test_what_a_file_made_up_is_not_drawn(changed: dict[str, Any]) -> None:
    weights = np.ones((2, 3, 2, 2))
    assert first_layers(run_of(weights, **changed)) == []
    assert len(first_layers(run_of(weights))) == 1


def test_two_channels_are_no_colours() -> None:
    assert first_layers(run_of(np.ones((2, 2, 2, 2)))) == []
