"""Curves over steps in panels one below the other, all on the same steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from traindx.messages import say
from traindx.report.figures.canvas import Canvas, Figure
from traindx.report.figures.thinning import ABSENT
from traindx.report.story import number
from traindx.report.untrusted import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Okabe and Ito's colours, told apart by colour-blind eyes, on light and on dark ground.
COLORS = ("#2b7bba", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9")
QUIET = "#8a9299"
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_MOST_MARKERS = 60
_TOP, _BOTTOM, _GAP = 26, 40, 38


@dataclass(frozen=True, slots=True)
class Line:
    """One curve, or marks at some steps.

    Attributes:
        name: What the legend calls it; none if there is only one.
        steps: Where it was measured.
        values: What was.
        color: Its colour; by default the next one.
        mode: Plotly's, if not lines.
        symbol: The mark's shape.
        texts: What a mark says when pointed at.
        dash: How its line is broken; by default the next way, so that colour never stands alone.
        quiet: Whether it stays out of the legend.
    """

    name: str
    steps: NDArray[np.int64]
    values: NDArray[np.float64]
    color: str = ""
    mode: str = ""
    symbol: str = "circle"
    texts: tuple[str, ...] = ()
    dash: str = ""
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves on one axis.

    Attributes:
        title: What they are.
        lines: The curves.
        level: A value to compare with.
        level_name: What that value is.
        height: Pixels.
        ticks: Names of the whole numbers from 0 on, in place of numbers.
        marks_broken: Whether the first value that is not finite is marked.
    """

    title: str
    lines: tuple[Line, ...]
    level: float | None = None
    level_name: str = ""
    height: int = 120
    ticks: tuple[str, ...] = ()
    marks_broken: bool = True


def label(text: str) -> str:
    """User text for plotly, which would read `<b>` or `<a href>` as markup."""
    return plain(text).replace("&", "&amp;").replace("<", "&lt;")


def stacked(canvas: Canvas, panels: Sequence[Panel], shapes: Sequence[Any] = ()) -> Figure:
    """The panels from top to bottom, with what all of them show."""
    height = _TOP + _BOTTOM + sum(p.height for p in panels) + _GAP * (len(panels) - 1)
    inner = height - _TOP - _BOTTOM
    layout: Figure = {
        "height": height,
        "margin": {"l": 64, "r": 16, "t": _TOP, "b": _BOTTOM},
        "hovermode": "closest",
        "dragmode": False,
        "showlegend": True,
    }
    layout["xaxis"] = _steps(canvas) | {"anchor": _axis_name("y", len(panels) - 1)}
    data: list[Any] = []
    annotations: list[Any] = []
    drawn: list[Any] = [*shapes]
    top = 0
    for i, panel in enumerate(panels):
        high, low = 1 - top / inner, 1 - (top + panel.height) / inner
        layout[_layout_name("yaxis", i)] = _axis(panel) | {
            "domain": [round(max(low, 0.0), 5), round(high, 5)]
        }
        if len([line for line in panel.lines if line.name and not line.quiet]) > 1:
            layout[_layout_name("legend", i)] = _legend(round(high, 5))
        if panel.title:
            annotations.append(_heading(panel.title, high))
        data.extend(_traces(canvas, panel, i))
        drawn.extend(_broken(panel, i))
        top += panel.height + _GAP
    return {"data": data, "layout": layout | {"annotations": annotations, "shapes": drawn}}


def _layout_name(name: str, i: int) -> str:
    return name if i == 0 else f"{name}{i + 1}"


_axis_name = _layout_name


def _legend(high: float) -> Any:
    return {
        "orientation": "h", "x": 1, "xanchor": "right", "y": high, "yanchor": "bottom",
        "bgcolor": "rgba(0,0,0,0)", "font": {"size": 11},
    }  # fmt: skip


def _heading(title: str, high: float) -> Any:
    return {"text": title, "y": round(high, 5)}


def _steps(canvas: Canvas) -> Figure:
    """The same extent in every figure, so that they can be compared down the page."""
    count = canvas.run.steps
    margin = 0.5 + 0.01 * count
    title: Any = {"text": canvas.words(say("step")), "standoff": 6}
    return {"title": title, "zeroline": False, "range": [-margin, count - 1 + margin]}


def _axis(panel: Panel) -> Figure:
    """Logarithmic where positive values span more than two decades."""
    if panel.ticks:
        return {
            "tickvals": [*range(len(panel.ticks))], "ticktext": [*panel.ticks],
            "range": [len(panel.ticks) - 0.4, -0.6], "zeroline": False,
        }  # fmt: skip
    parts = [line.values[np.isfinite(line.values)] for line in panel.lines]
    values = np.concatenate([*parts, [panel.level] if panel.level is not None else []])
    few = 5 if panel.height > 100 else 3
    axis: Figure = {"nticks": few + 1}
    return axis | (_constant(values) or logarithmic(values, few))


def _constant(values: NDArray[np.float64]) -> Figure:
    """What shows a single value in the middle of its axis, with its own tick."""
    values = values[values != ABSENT]
    if not len(values) or values.min() != values.max():
        return {}
    value = float(values[0])
    room = (abs(value) or 1.0) if abs(value) < 1e307 else 0.0  # twice it may be infinite
    return {
        "range": [value - room, value + room],
        "tickvals": [value],
        "ticktext": [number(value)],
    }


def logarithmic(values: NDArray[np.float64], ticks: int) -> Figure:
    """What makes an axis logarithmic, if these values ask for it."""
    values = values[np.isfinite(values) & (values != ABSENT)]
    positive = values[values > 0]
    mostly = len(positive) >= 0.8 * len(values) and not (values < 0).any()
    if not len(positive) or not mostly or positive.max() <= 100 * positive.min():
        return {}
    decades = math.log10(positive.max()) - math.log10(positive.min())
    # Plotly sets powers a quarter larger than other ticks.
    small: Any = {"size": 9.6}
    return {"type": "log", "dtick": max(1, math.ceil(decades / ticks)), "tickfont": small}


def _traces(canvas: Canvas, panel: Panel, i: int) -> list[Any]:
    named = [line for line in panel.lines if line.name and not line.quiet]
    traces = [_trace(canvas, line, i, j, legend=len(named) > 1)
              for j, line in enumerate(panel.lines)]  # fmt: skip
    if panel.level is not None:
        traces.append(_level(panel, i))
    return [*traces]


def _trace(canvas: Canvas, line: Line, i: int, j: int, *, legend: bool) -> Figure:
    color = line.color or COLORS[j % len(COLORS)]
    few = len(line.steps) <= _MOST_MARKERS
    trace: Figure = {
        "type": "scatter",
        "mode": line.mode or ("lines+markers" if few else "lines"),
        "name": label(line.name),
        "x": canvas.numbers(line.steps),
        "y": canvas.numbers(line.values),
        "line": {"color": color, "dash": line.dash or _DASHES[j % len(_DASHES)]},
        "yaxis": _axis_name("y", i),
    }
    if legend and line.name and not line.quiet:
        trace |= {"showlegend": True, "legend": _axis_name("legend", i)}
    if line.mode:
        trace["marker"] = {"color": color, "symbol": line.symbol, "size": 8}
    if line.texts:
        return trace | {"text": [*line.texts], "hovertemplate": "%{x}<br>%{text}"}
    return trace


def _level(panel: Panel, i: int) -> Figure:
    lines = [line for line in panel.lines if len(line.steps)]
    first = min((int(line.steps[0]) for line in lines), default=0)
    last = max((int(line.steps[-1]) for line in lines), default=0)
    return {
        "type": "scatter", "mode": "lines", "name": panel.level_name,
        "x": [first, max(last, first + 1)],
        "y": [panel.level, panel.level], "yaxis": _axis_name("y", i),
        "line": {"color": QUIET, "width": 1.5, "dash": "dash"},
        "hovertemplate": f"{panel.level_name} {number(panel.level or 0.0)}",
    }  # fmt: skip


def _broken(panel: Panel, i: int) -> list[Any]:
    """A line at the first value of each curve that is not finite."""
    marks: list[Any] = []
    for line in panel.lines if panel.marks_broken else ():
        bad = np.flatnonzero(~np.isfinite(line.values))
        if len(bad):
            step, value = int(line.steps[bad[0]]), float(line.values[bad[0]])
            shape = vertical(step, COLORS[1], "solid")
            shape["yref"] = f"{_axis_name('y', i)} domain"
            marks.append(shape | {"label": _tag(f"{number(value)} @ {step}")})
    return marks[:3]


def _tag(text: str) -> Any:
    return {
        "text": text, "textposition": "end", "textangle": 0, "xanchor": "right", "yanchor": "top",
    }  # fmt: skip


def vertical(step: int, color: str = QUIET, dash: str = "dot") -> Figure:
    """A line through every panel at one step."""
    return {
        "type": "line", "yref": "paper", "x0": step, "x1": step, "y0": 0, "y1": 1,
        "line": {"color": color, "width": 1, "dash": dash}, "layer": "below",
    }  # fmt: skip


def band(first: int, last: int) -> Figure:
    """A shaded stretch of steps."""
    return {
        "type": "rect", "yref": "paper", "x0": first, "x1": last, "y0": 0, "y1": 1,
        "fillcolor": COLORS[0], "opacity": 0.1, "line": {"width": 1, "color": COLORS[0]},
        "layer": "below",
    }  # fmt: skip


TEMPLATE: Figure = {
    "layout": {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "xaxis": {"gridcolor": "#e3e6e7", "zeroline": False, "automargin": False},
        "yaxis": {"gridcolor": "#e3e6e7", "zeroline": False, "exponentformat": "power"},
        "annotationdefaults": {
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "yref": "paper",
            "yanchor": "bottom",
            "yshift": 3,
            "showarrow": False,
            "font": {"size": 12},
        },
        "hoverlabel": {"align": "left"},
    },
    "data": {
        "scatter": [
            {
                "type": "scatter",
                "showlegend": False,
                "line": {"width": 1.75},
                "marker": {"size": 4},
                "hovertemplate": "%{x}<br>%{y:.4g}",
            }
        ]
    },
}
"""Plotly's defaults for all figures, said once."""
