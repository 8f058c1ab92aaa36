"""Quantiles of the values of every layer along the depth of a network, before training."""

from __future__ import annotations

import math

import numpy as np

from traindx.messages import say
from traindx.pictured import PROBABILITIES
from traindx.report.figures.canvas import Canvas, Figure
from traindx.report.figures.distributions import COLOR, FILL, Distributed, Floats, names
from traindx.report.figures.layers import shortened, ticks
from traindx.report.figures.panels import QUIET
from traindx.report.story import number

_DECADES = 1.5
"""Between the widths of layers, from which on their axis is logarithmic away from 0."""


class Scale:
    """Linear, or where widths differ by much, linear near 0 and logarithmic beyond."""

    def __init__(self, quantiles: Floats) -> None:
        widths = np.nanmax(np.abs(quantiles[:, [1, -2]]), axis=1, initial=0.0)
        positive = widths[np.isfinite(widths) & (widths > 0)]
        most = np.abs(quantiles[np.isfinite(quantiles)])
        self.most = float(most.max(initial=0.0))
        wide = len(positive) > 1 and math.log10(positive.max() / positive.min()) > _DECADES
        self.near = float(positive.min()) / 3 if wide else 0.0

    def of(self, values: Floats) -> Floats:
        """Where values stand."""
        if not self.near:
            return values
        return np.sign(values) * np.log10(1 + np.abs(values) / self.near)

    def axis(self) -> Figure:
        """Its ticks: 0 and powers of ten on either side."""
        if not self.near:
            return {"nticks": 6}
        low, high = math.ceil(math.log10(self.near)), math.floor(math.log10(self.most))
        every = max(1, math.ceil((high - low + 1) / 4))
        powers = [*range(high, low - 1, -every)][::-1]
        values = [*(-(10.0**p) for p in reversed(powers)), 0.0, *(10.0**p for p in powers)]
        texts = [*(f"-10<sup>{p}</sup>" for p in reversed(powers)), "0",
                 *(f"10<sup>{p}</sup>" for p in powers)]  # fmt: skip
        return {"tickvals": self.of(np.array(values)).tolist(), "ticktext": texts}


_BANDS = ((1, 7, 0.14), (2, 6, 0.2), (3, 5, 0.3))
"""Of `PROBABILITIES`: 1 to 99 %, 5 to 95 %, 25 to 75 %, and how opaque each is."""


def quantiles_figure(canvas: Canvas, shown: Distributed) -> Figure:
    """Bands around the median of every layer, in network order."""
    noted = np.isfinite(shown.histograms[:, 2])
    quantiles: Floats = shown.quantiles[noted]
    scale = Scale(quantiles)
    own = names([layer for layer, there in zip(shown.layers, noted, strict=True) if there])
    places = np.arange(len(own), dtype=np.float64)
    placed = scale.of(quantiles)
    known = np.isfinite(placed).all(axis=1)
    color, fill = COLOR[shown.kind], FILL[shown.kind]
    data: list[Figure] = []
    for low, high, opacity in _BANDS:
        x = np.concatenate([places[known], places[known][::-1]])
        y = np.concatenate([placed[known, low], placed[known, high][::-1]])
        data.append({
            "type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": True,
            "name": f"{100 * PROBABILITIES[low]:g} - {100 * PROBABILITIES[high]:g} %",
            "x": canvas.numbers(x), "y": canvas.numbers(y), "fill": "toself",
            "fillcolor": f"rgba({fill},{opacity})", "line": {"width": 0, "color": color},
        })  # fmt: skip
    data.append({
        "type": "scatter", "mode": "lines+markers", "name": canvas.words(say("median")),
        "showlegend": True, "x": canvas.numbers(places), "y": canvas.numbers(placed[:, 4]),
        "line": {"color": color, "width": 1.75}, "marker": {"color": color, "size": 4},
        "text": canvas.texts([_hover(name, row) for name, row in zip(own, quantiles, strict=True)]),
        "hovertemplate": "%{text}<extra></extra>",
    })  # fmt: skip
    positions = [*map(str, range(1, len(own) + 1))] if len(own) > 24 else None
    words = say("layer, in network order") if positions else say("layer")
    layout: Figure = {
        "height": 300,
        "margin": {"l": 64, "r": 16, "t": 30, "b": 60},
        "dragmode": False,
        "hovermode": "closest",
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom"},
        "xaxis": {"showgrid": False, "automargin": True,
                  "title": {"text": canvas.words(words), "standoff": 6}}
        | ticks(canvas, positions or [shortened(name, 14) for name in own], 24),
        "yaxis": {"zeroline": True, "zerolinecolor": QUIET, "zerolinewidth": 1,
                  "exponentformat": "power"} | scale.axis(),
    }  # fmt: skip
    return {"data": data, "layout": layout}


def _hover(name: str, row: Floats) -> str:
    shown = [f"{100 * p:g} % {number(float(row[i]))}" for i, p in enumerate(PROBABILITIES)]
    return "<br>".join([name, *shown])
