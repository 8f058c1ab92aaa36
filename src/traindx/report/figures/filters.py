"""The weights of the first layer as pictures: what they look like tells more than their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traindx.facts import Json
from traindx.messages import Message, say
from traindx.records import EventKind, Site, Vector
from traindx.report.figures.canvas import Canvas, Figure
from traindx.report.figures.layers import ticks
from traindx.report.figures.png import data_address
from traindx.run import Run

QUANTITY = "first_layer.weights"
_COLUMNS = 8
_MOST_ROWS = 16
"""Filters of several channels, which take a row each."""
_MOST_UNITS = 64
_TILE = 56
"""Pixels that a filter is drawn with, about; a browser scales the whole."""
_WIDTH = 448

Pixels: TypeAlias = NDArray[np.uint8]
Weights: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FirstLayer:
    """What a run holds of the first layer of a model.

    Attributes:
        site: The layer.
        step: When it was looked at; -1 before training.
        kind: How to arrange it: `filters`, `channels`, `signals`, `rows` or `matrix`.
        layer: Its class.
        weights: [units, channels, height, width].
        units: Units that it has.
        inputs: Channels or numbers that each of them is given.
        size: Height and width before they were averaged down.
    """

    site: Site
    step: int
    kind: str
    layer: str
    weights: Weights
    units: int
    inputs: int
    size: tuple[int, int]


def first_layers(run: Run) -> list[FirstLayer]:
    """The first layers that a run holds, each as it was last; nothing that does not fit."""
    last: dict[Site, FirstLayer] = {}
    vectors = {(v.site, v.step): v for own in run.vectors(QUANTITY).values() for v in own}
    for event in run.events(EventKind.OBSERVED):
        vector = vectors.get((event.site, event.step))
        if event.detail.get("probe") == "first-weights" and vector is not None:
            found = _read(vector, event.detail)
            if found is not None:
                last[event.site] = found
    return [*last.values()]


def _read(vector: Vector, detail: dict[str, Json]) -> FirstLayer | None:
    """What an event says of a vector, None if that cannot be: a file may hold anything."""
    shape, size = _extents(detail.get("shape"), 4), _extents(detail.get("size"), 2)
    units, inputs = (_extents([detail.get(name)], 1) for name in ("units", "inputs"))
    kind, layer = str(detail.get("kind", "")), str(detail.get("layer", ""))
    if not (shape and size and units and inputs) or math.prod(shape) != len(vector.values):
        return None
    if kind not in ("filters", "channels", "signals", "rows", "matrix"):
        return None
    if kind in ("filters", "rows") and shape[1] not in (1, 3):
        return None
    weights: Weights = np.reshape(np.array(vector.values), shape)
    return FirstLayer(vector.site, vector.step, kind, layer, weights, units[0], inputs[0],
                      (size[0], size[1]))  # fmt: skip


def _extents(value: Json, count: int) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) != count:
        return None
    whole = [n for n in value if isinstance(n, int) and not isinstance(n, bool) and n > 0]
    return tuple(whole) if len(whole) == count else None


def filters_figure(canvas: Canvas, layer: FirstLayer) -> Figure:
    """A grid of pictures; of what is no picture a heatmap of weights."""
    if layer.kind == "matrix":
        return _matrix(canvas, layer)
    pixels = _montage(layer)
    height, width, _ = pixels.shape
    axis: Figure = {"visible": False, "constrain": "domain"}
    return {
        "data": [{"type": "image", "source": data_address(pixels), "hoverinfo": "skip"}],
        "layout": {
            "height": round(_WIDTH * height / width),
            "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
            "dragmode": False,
            "meta": {"aspect": height / width},
            "xaxis": axis | {"range": [-0.5, width - 0.5]},
            "yaxis": axis | {"range": [height - 0.5, -0.5], "scaleanchor": "x"},
        },
    }


def _montage(layer: FirstLayer) -> Pixels:
    """The pictures in rows, on nothing: the page shines through between them."""
    units = _scaled(layer.weights)[: _num_shown(layer)]
    if layer.kind == "channels":
        strips = [_arranged([_picture(c[None]) for c in unit], len(unit), 2) for unit in units]
        return _arranged(strips, _num_columns(layer), 10)
    return _arranged([_picture(unit) for unit in units], _num_columns(layer), 3)


def _arranged(pictures: Sequence[Pixels], columns: int, gap: int) -> Pixels:
    """Pictures of one size in rows, with gaps between them."""
    height, width, _ = pictures[0].shape
    rows = -(-len(pictures) // columns)
    whole = np.zeros((rows * (height + gap) - gap, columns * (width + gap) - gap, 4), np.uint8)
    for i, picture in enumerate(pictures):
        top, left = (i // columns) * (height + gap), (i % columns) * (width + gap)
        whole[top : top + height, left : left + width] = picture
    return whole


def _num_shown(layer: FirstLayer) -> int:
    """Units that are drawn."""
    most = _MOST_ROWS * _num_columns(layer) if layer.kind == "channels" else _MOST_UNITS
    return min(len(layer.weights), most)


def _num_columns(layer: FirstLayer) -> int:
    """As many as make the whole about square, where single pictures are wide or high."""
    _, channels, height, width = layer.weights.shape
    if layer.kind == "channels":
        return max(1, min(len(layer.weights), _COLUMNS // channels))
    wanted = round(_COLUMNS * math.sqrt(height / width))
    return max(1, min(len(layer.weights), max(2, min(2 * _COLUMNS, wanted))))


def _scaled(weights: Weights) -> Weights:
    """Each unit from its least weight, 0, to its greatest, 1; 0.5 where all are the same."""
    finite = np.isfinite(weights)
    axes = (1, 2, 3)
    low = np.where(finite, weights, np.inf).min(axis=axes, keepdims=True)
    high = np.where(finite, weights, -np.inf).max(axis=axes, keepdims=True)
    with np.errstate(all="ignore"):
        scaled = (weights - low) / (high - low)
    return np.where(high > low, scaled, np.where(finite, 0.5, np.nan))


def _picture(unit: Weights) -> Pixels:
    """One unit [1 or 3, height, width], enlarged; a weight that is not finite is orange."""
    bad = ~np.isfinite(unit).all(axis=0)
    levels = np.round(255 * np.where(np.isfinite(unit), unit, 0)).astype(np.uint8)
    channels: Any = np.moveaxis(np.broadcast_to(levels, (3, *levels.shape[1:])), 0, -1)
    opaque = np.full((*channels.shape[:2], 1), 255, np.uint8)
    pixels = np.concatenate([channels, opaque], axis=2)
    pixels[bad] = (232, 89, 12, 255)
    times = max(1, round(_TILE / max(pixels.shape[:2])))
    return np.repeat(np.repeat(pixels, times, axis=0), times, axis=1)


def _matrix(canvas: Canvas, layer: FirstLayer) -> Figure:
    """Rows of weights: a unit a row, an input a column."""
    rows = layer.weights[:, 0, 0]
    finite = np.abs(rows[np.isfinite(rows)])
    most = (float(np.quantile(finite, 0.99)) if len(finite) else 0.0) or 1.0
    units, inputs = rows.shape
    axis: Figure = {"showgrid": False, "zeroline": False}
    said = {name: {"text": canvas.words(text), "standoff": 4}
            for name, text in (("x", say("input")), ("y", say("unit")))}  # fmt: skip
    bar: Any = {"thickness": 12, "outlinewidth": 0, "len": 1, "exponentformat": "power"}
    trace: Figure = {
        "type": "heatmap",
        "z": canvas.matrix(rows, "values"),
        "colorscale": [[0, "#2166ac"], [0.25, "#92c5de"], [0.5, "#f7f7f7"], [0.75, "#f4a582"],
                       [1, "#b2182b"]],
        "zmin": -most, "zmax": most, "colorbar": bar,
        "hovertemplate": "%{y}, %{x}<br>%{z:.4g}<extra></extra>",
    }  # fmt: skip
    return {
        "data": [trace],
        "layout": {
            "height": min(448, max(160, 60 + 10 * units)),
            "margin": {"l": 56, "r": 8, "t": 8, "b": 44},
            "dragmode": False,
            "xaxis": axis | {"title": said["x"]} | ticks(canvas, [*map(str, range(inputs))], 8),
            "yaxis": axis | {"title": said["y"], "autorange": "reversed"}
            | ticks(canvas, [*map(str, range(units))], 8),
        },
    }  # fmt: skip


# -- words -----------------------------------------------------------------------------------------


def shown_words(layer: FirstLayer) -> Iterator[Message]:
    """What the picture shows, and what it leaves out."""
    channels = layer.weights.shape[1]
    match layer.kind:
        case "filters" if channels == 3:
            yield say("Each picture is one filter: its weights for red, green and blue.")
        case "filters":
            yield say("Each picture is one filter.")
        case "channels":
            yield say(
                "Each group side by side is one filter, each picture its weights for one input "
                "channel."
            )
        case "signals":
            yield say("Each picture is one filter: a row an input channel, a column a position.")
        case "rows":
            yield say(
                "Each picture is the weights of one unit, arranged as the image that it is given."
            )
        case _:
            yield say("Each row is the weights of one unit. Blue is below 0, red above.")
    if layer.kind != "matrix":
        yield say("Black is the least and white the greatest weight of each by itself.")
    yield from _left_out(layer)


def _left_out(layer: FirstLayer) -> Iterator[Message]:
    _, channels, height, width = layer.weights.shape
    shown = _num_shown(layer)
    if shown < layer.units:
        yield say("Shown are the first {shown} of {units} units.", shown=shown, units=layer.units)
    inputs = {"channels": channels, "signals": height, "matrix": width}.get(layer.kind)
    if inputs is not None and inputs < layer.inputs:
        yield say("Of {inputs} inputs, the first {shown}.", inputs=layer.inputs, shown=inputs)
    if layer.kind not in ("signals", "matrix") and (height, width) != layer.size:
        yield say("They are averaged down from {height} x {width}.", height=layer.size[0],
                  width=layer.size[1])  # fmt: skip
    if layer.layer == "Conv3d":
        yield say("Of each, the middle slice.")


def reading_words(layer: FirstLayer) -> list[Message]:
    """What to look for."""
    if layer.step < 0:
        return [
            say("Before training this is noise by design, as random as it was drawn."),
            say(
                "Wrong are pictures that are all alike (units that start the same stay the same), "
                "flat gray ones (weights that are all equal), and noise where pretrained weights "
                "should be: then they were not loaded."
            ),
        ]
    return [
        say(
            "Filters of a network that has learnt from images are smooth: edges, bars, blobs of "
            "colour."
        ),
        say(
            "Where they are still noise, it has not converged: too few steps, a learning rate that "
            'does not fit, or too little regularization (CS231n, "Neural Networks Part 3"). Many '
            "alike or flat are capacity that is not used."
        ),
    ]
