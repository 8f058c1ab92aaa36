"""How the sizes of numbers are spread over powers of two, and how that moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traindx.messages import say
from traindx.quantities import EXPONENTS
from traindx.records import Site, Vector
from traindx.report.figures.canvas import Canvas, Figure
from traindx.report.figures.layers import ticks
from traindx.report.figures.thinning import spread

QUANTITIES = ("output.exponents", "grad.exponents", "param.exponents")
_MOST_STEPS = 32

Floats: TypeAlias = NDArray[np.float64]

_LIMITS = (
    (16, "float16 max 65504"),
    (-14, "float16 normal 2<sup>-14</sup>"),
    (-24, "float16 least 2<sup>-24</sup>"),
)


def exponents_figure(
    canvas: Canvas, quantity: str, site: Site, most: int = _MOST_STEPS
) -> Figure | None:
    """Exponents over measured steps at one site; None if they were not measured there."""
    vectors = spread([*_of(canvas, quantity, site)], most)
    if not vectors:
        return None
    rows: Floats = np.stack([np.array(v.values) for v in vectors], axis=1)  # exponents x steps
    total = np.maximum(np.sum(rows, axis=0), 1.0)
    low, high = _extent(rows)
    fractions = rows[low : high + 1] / total
    exponents = [*EXPONENTS][low : high + 1]
    layout: Figure = {
        "height": 260,
        "margin": {"l": 64, "r": 16, "t": 12, "b": 40},
        "dragmode": False,
        "xaxis": _x(canvas, vectors),
        "yaxis": {
            "title": {"text": canvas.words(say("exponent (power of 2)")), "standoff": 4},
            "showgrid": False,
            "range": [exponents[0] - 0.5, exponents[-1] + 0.5],
        },
        "shapes": [_limit(power, name) for power, name in _LIMITS
                   if exponents[0] - 1 < power <= exponents[-1] + 1],
    }  # fmt: skip
    return {"data": [_trace(canvas, fractions, exponents, vectors)], "layout": layout}


def _of(canvas: Canvas, quantity: str, site: Site) -> Sequence[Vector]:
    found = canvas.run.vectors(quantity).get(site, ())
    return [vector for vector in found if len(vector.values) == len(EXPONENTS)]


def _extent(rows: Floats) -> tuple[int, int]:
    """The bins to show: those that are filled, and where half precision ends near them."""
    filled = np.flatnonzero(rows.sum(axis=1))
    if not len(filled):
        return 0, len(EXPONENTS) - 1
    low, high = int(filled[0]) - 2, int(filled[-1]) + 2
    for power, _ in _LIMITS:
        place = power - EXPONENTS[0]
        low = min(low, place - 2) if place >= low - 8 else low
        high = max(high, place + 1) if place <= high + 8 else high
    return max(0, low), min(len(EXPONENTS) - 1, high)


def _x(canvas: Canvas, vectors: Sequence[Vector]) -> dict[str, Any]:
    steps = [str(vector.step) for vector in vectors]
    title: Any = {"text": canvas.words(say("measured step")), "standoff": 6}
    return {"type": "category", "showgrid": False, "title": title} | ticks(canvas, steps, 10)


def _trace(
    canvas: Canvas,
    fractions: Floats,
    exponents: Sequence[int],
    vectors: Sequence[Vector],
) -> Figure:
    step = canvas.words(say("step"))
    marks = [-4, -3, -2, -1, 0]
    return {
        "type": "heatmap",
        "x": canvas.texts([str(vector.step) for vector in vectors]),
        "y": [*exponents],
        "z": canvas.fractions(fractions, "log10"),
        "customdata": canvas.fractions(fractions, "percent"),
        "zmin": -4,
        "zmax": 0,
        "colorscale": "Cividis",
        "hoverongaps": False,
        "hovertemplate": f"2<sup>%{{y}}</sup><br>{step} %{{x}}<br>"
        "%{customdata:.3g} %<extra></extra>",
        "colorbar": {
            "thickness": 12, "outlinewidth": 0, "len": 1, "tickvals": [*marks],
            "ticktext": [f"{100 * 10.0**mark:g} %" for mark in marks],
        },
    }  # fmt: skip


def _limit(power: int, name: str) -> Figure:
    """A line under the bin of this power: what lies below it is smaller."""
    y = power - 0.5
    label: Any = {
        "text": name, "textposition": "start", "xanchor": "left", "yanchor": "bottom",
        "font": {"size": 10},
    }  # fmt: skip
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y,
        "line": {"color": "#d55e00", "width": 1.5, "dash": "dash"}, "label": label,
    }  # fmt: skip
