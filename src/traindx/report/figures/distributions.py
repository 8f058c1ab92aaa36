"""How the values of every layer are distributed before training: quantiles and histograms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traindx.facts import ModelFacts
from traindx.messages import Message, say
from traindx.pictured import BINS, PROBABILITIES
from traindx.records import EventKind, Site
from traindx.report.figures.canvas import Canvas, Figure
from traindx.report.figures.layers import shortened
from traindx.report.figures.panels import COLORS, QUIET, label
from traindx.report.figures.thinning import spread
from traindx.report.layers import Layer, layers
from traindx.report.story import number
from traindx.run import Run

Kind = Literal["output", "gradient", "weight"]
KINDS: tuple[Kind, ...] = ("output", "gradient", "weight")
COLOR = {"output": COLORS[0], "gradient": COLORS[1], "weight": COLORS[2]}
FILL = {"output": "43,123,186", "gradient": "213,94,0", "weight": "0,158,115"}
MOST_HISTOGRAMS = 24
_HEAD = 4
"""Numbers before the bins: two ends, fractions of zeros and of what is not finite."""

Floats: TypeAlias = NDArray[np.float64]


def title(kind: Kind) -> Message:
    """What is distributed."""
    match kind:
        case "output":
            return say("outputs")
        case "gradient":
            return say("gradients of the outputs")
        case "weight":
            return say("weights")


@dataclass(frozen=True, slots=True)
class Distributed:
    """The layers of a model of which something was noted, with their vectors.

    Attributes:
        model: The model.
        kind: What was noted.
        layers: In network order, the same for every kind.
        quantiles: [layers, probabilities]; NaN where this kind was not noted.
        histograms: [layers, head and bins]; NaN likewise.
    """

    model: ModelFacts
    kind: Kind
    layers: list[Layer]
    quantiles: Floats
    histograms: Floats


def distributed(run: Run) -> list[list[Distributed]]:
    """What a run holds of each kind, for one model after another."""
    forms = {"quantiles": len(PROBABILITIES), "histogram": _HEAD + BINS}
    found = {
        (kind, form): _last(run, f"probe.{kind}_{form}", count)
        for kind in KINDS
        for form, count in forms.items()
    }
    shown: list[list[Distributed]] = []
    for model in run.models.values():
        noted = {site for (_, form), own in found.items() if form == "histogram" for site in own}
        order = [layer for layer in layers(model) if layer.site in noted]
        own: list[Distributed] = []
        for kind in KINDS:
            rows = {form: _stacked(found[kind, form], order, n) for form, n in forms.items()}
            if np.isfinite(rows["histogram"]).any():
                own.append(Distributed(model, kind, order, rows["quantiles"], rows["histogram"]))
        shown += [own] if own else []
    return shown


def _stacked(found: Mapping[Site, Floats], order: Sequence[Layer], count: int) -> Floats:
    return np.array([found.get(layer.site, np.full(count, np.nan)) for layer in order])


def _last(run: Run, quantity: str, count: int) -> dict[Site, Floats]:
    """The last vector of each place that is as long as it must be."""
    return {
        site: np.array(vectors[-1].values)
        for site, vectors in run.vectors(quantity).items()
        if vectors and len(vectors[-1].values) == count
    }


def names(shown: Sequence[Layer]) -> list[str]:
    """Layers as an axis names them."""
    return [label(layer.site.fqn or layer.site.model) for layer in shown]


# -- histograms ------------------------------------------------------------------------------------


def histograms_figure(canvas: Canvas, shown: Distributed) -> Figure:
    """A row a layer: its histogram about 0, as wide as its values are large."""
    chosen = spread([*range(len(shown.layers))], MOST_HISTOGRAMS)
    rows = [shown.histograms[i] for i in chosen]
    noted = [bool(np.isfinite(row[2])) for row in rows]
    own = [
        shortened(name, 13) if there else ""
        for name, there in zip(names([shown.layers[i] for i in chosen]), noted, strict=True)
    ]
    color, fill = COLOR[shown.kind], FILL[shown.kind]
    x, y = _outlines(rows)
    spikes_x, spikes_y = _spikes(rows)
    common: Figure = {"type": "scatter", "hoverinfo": "skip", "mode": "lines"}
    data: list[Figure] = [
        common | {"x": canvas.numbers(x), "y": canvas.numbers(y), "fill": "toself",
                  "fillcolor": f"rgba({fill},0.3)", "line": {"color": color, "width": 1}},
        common | {"x": canvas.numbers(spikes_x), "y": canvas.numbers(spikes_y),
                  "line": {"color": color, "width": 3}},
        _labels(canvas, rows),
    ]  # fmt: skip
    height = 26 * len(rows)
    layout: Figure = {
        "height": 20 + height,
        "margin": {"l": 12 + round(6.6 * max(map(len, own))), "r": 4, "t": 14, "b": 6},
        "dragmode": False,
        "meta": {"narrow": True},
        "xaxis": {"visible": False, "range": [-1.04, 2.5]},
        "yaxis": {
            "range": [len(rows) - 0.85, -1], "showgrid": False, "zeroline": False,
            "tickvals": [i - _MIDDLE for i in range(len(rows))], "ticktext": own,
        },
        "shapes": [{
            "type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1, "layer": "below",
            "line": {"color": QUIET, "width": 1, "dash": "dot"},
        }],
    }  # fmt: skip
    return {"data": data, "layout": layout}


_MIDDLE = 0.3
"""Of a row, from its base, where its name and its scale stand."""


def _reach(row: Floats) -> float:
    """How far from 0 its histogram goes; 0 where there is none."""
    reach = float(np.abs(row[:2]).max())
    return reach if math.isfinite(reach) else 0.0


def _outlines(rows: Sequence[Floats]) -> tuple[Floats, Floats]:
    """The histograms as closed lines, with gaps between them; x is over the reach."""
    xs: list[Floats] = []
    ys: list[Floats] = []
    gap = np.array([np.nan])
    for i, row in enumerate(rows):
        counts, reach = row[_HEAD:], _reach(row)
        if not (math.isfinite(row[2]) and reach and counts.sum() > 0):
            continue
        low, high = row[:2] / reach
        if low == high:
            continue  # a single value is a spike
        counts = _joined(counts)
        edges = low + (high - low) * np.arange(len(counts) + 1) / len(counts)
        heights = 0.85 * counts / counts.max()
        xs += [np.repeat(edges, 2), gap]
        ys += [i - np.concatenate([[0], np.repeat(heights, 2), [0]]), gap]
    if not xs:
        return gap, gap
    return np.concatenate(xs[:-1]), np.concatenate(ys[:-1])


def _joined(counts: Floats) -> Floats:
    """Fewer and wider bins where there are few elements, whose comb would mean nothing."""
    total = counts.sum()
    wide = 1 if total >= _PER_BIN * BINS else 2 if total >= _PER_BIN * BINS / 2 else 4
    return np.reshape(counts, (BINS // wide, wide)).sum(axis=1)


_PER_BIN = 24
"""Elements a bin, on average, from which on its height is more than chance."""


def _spikes(rows: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Bars for what many elements are exactly: as high at 0 as zeros are frequent."""
    found = [(i, 0.0, float(row[2])) for i, row in enumerate(rows) if row[2] >= _FEW_ZEROS]
    found += [
        (i, math.copysign(1.0, row[0]), 1.0 - float(row[2]))
        for i, row in enumerate(rows)
        if row[0] == row[1] and row[0] != 0
    ]
    points = [(x, y) for i, x, share in found for y in (float(i), i - 0.85 * share, math.nan)]
    array = np.array(points or [(math.nan, math.nan)])
    return array[:, 0], array[:, 1]


_FEW_ZEROS = 0.01
"""Fraction of exact zeros from which on they are told."""


def _labels(canvas: Canvas, rows: Sequence[Floats]) -> Figure:
    texts = [canvas.words(_told(row)) if math.isfinite(row[2]) else "" for row in rows]
    return {
        "type": "scatter", "mode": "text", "hoverinfo": "skip", "textposition": "middle right",
        "x": [1.02] * len(rows), "y": [i - _MIDDLE for i in range(len(rows))],
        "text": canvas.texts(texts), "textfont": {"size": 11}, "cliponaxis": False,
    }  # fmt: skip


def _told(row: Floats) -> Message:
    """The scale of a row, and what of it is no part of its histogram."""
    zeros, broken = float(row[2]), float(row[3])
    if broken > 0:
        return say("{percent:.0f} % not finite", percent=math.ceil(100 * broken))
    if zeros == 1:
        return say("all zero")
    reach = number(float(f"{_reach(row):.2g}"))
    if zeros >= _FEW_ZEROS:
        return say("± {reach} · {percent:.0f} % zero", reach=reach, percent=100 * zeros)
    return say("± {reach}", reach=reach)


# -- words -----------------------------------------------------------------------------------------


def reading_words(kind: Kind) -> Message:
    """What to look for."""
    match kind:
        case "output":
            return say(
                "Outputs should stay about as wide from layer to layer. A funnel that closes is a "
                "signal that dies out, one that opens one that explodes; two humps at the ends of "
                "a tanh or sigmoid are saturation, and nearly all zeros after a ReLU dead units."
            )
        case "gradient":
            return say(
                "Gradients should stay about as wide from layer to layer. Where they close toward "
                "the first layers, those learn slowly or not at all; where they open, training "
                "diverges."
            )
        case "weight":
            return say(
                "Weights should be about as wide as their layer's initialization makes them. A "
                "single bar is a constant; a layer far wider than its siblings was drawn with "
                "another gain."
            )


def left_out(run: Run, shown: Distributed) -> list[Message]:
    """What the figures do not show."""
    said: list[Message] = []
    for event in run.events(EventKind.OBSERVED):
        detail = event.detail
        if detail.get("probe") == "distributions" and event.site.model == shown.model.name:
            total, looked = detail.get("layers"), detail.get("shown")
            if isinstance(total, int) and isinstance(looked, int) and looked < total:
                said.append(say("Of {total} layers, {looked} evenly spaced ones were looked at.",
                                total=total, looked=looked))  # fmt: skip
    if len(shown.layers) > MOST_HISTOGRAMS:
        said.append(say("Histograms are drawn of {shown} of {layers} layers, evenly spaced.",
                        shown=MOST_HISTOGRAMS, layers=len(shown.layers)))  # fmt: skip
    return said
