"""A normalization's batch statistics against its running ones, channel by channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from traindx.messages import say
from traindx.records import Site
from traindx.report.figures.canvas import Canvas, Figure
from traindx.report.figures.panels import COLORS, QUIET
from traindx.report.figures.thinning import spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_STEPS = 24

Pair = tuple["NDArray[np.float64]", "NDArray[np.float64]"]


class Channels:
    """The statistics of one normalization at the steps they were written at."""

    def __init__(self, canvas: Canvas, site: Site, most: int = _MOST_STEPS) -> None:
        run = canvas.run
        found = {
            name: {vector.step: vector for vector in run.vectors(f"norm.{name}").get(site, ())}
            for name in ("batch_mean", "running_mean", "batch_var", "running_var")
        }
        steps = sorted(found["batch_mean"])
        shared = [step for step in steps if all(step in written for written in found.values())]
        self.steps = spread(shared, most)
        self._found = found
        self._pairs = {step: self._pairs_at(step) for step in self.steps}
        self._extents = [self._extent(which) for which in range(2)]

    def at(self, step: int) -> tuple[Pair, Pair]:
        """Mean and standard deviation, each running first, then the batch's."""
        return self._pairs[step]

    def _pairs_at(self, step: int) -> tuple[Pair, Pair]:
        values = {name: np.array(steps[step].values) for name, steps in self._found.items()}
        spreads = [np.sqrt(np.maximum(values[n], 0.0)) for n in ("running_var", "batch_var")]
        return (values["running_mean"], values["batch_mean"]), (spreads[0], spreads[1])

    def extent(self, which: int) -> tuple[float, float]:
        """The range of the means (0) or deviations (1) over all steps."""
        return self._extents[which]

    def _extent(self, which: int) -> tuple[float, float]:
        parts = [part for step in self.steps for part in self.at(step)[which]]
        values = np.concatenate([*parts, np.empty(0)])
        values = values[np.isfinite(values)]
        if not len(values):
            return 0.0, 1.0
        low, high = float(values.min()), float(values.max())
        margin = 0.06 * (high - low) or 0.5
        return low - margin, high + margin


def norm_figure(canvas: Canvas, channels: Channels, step: int) -> Figure:
    """One mark a channel at this step; on the diagonal both agree."""
    data = [*_traces(canvas, channels, step)]
    layout: Figure = {
        "height": 300,
        "margin": {"l": 60, "r": 16, "t": 28, "b": 44},
        "dragmode": False,
        "showlegend": False,
        "annotations": [
            _heading(canvas.words(say("mean")), 0.0),
            _heading(canvas.words(say("standard deviation")), 0.56),
        ],
    }
    for which, (name, domain) in enumerate((("", [0, 0.44]), ("2", [0.56, 1]))):
        low, high = channels.extent(which)
        running, batch = canvas.words(say("running")), canvas.words(say("batch"))
        common: Figure = {"range": [low, high], "nticks": 5, "exponentformat": "power"}
        layout[f"xaxis{name}"] = common | {
            "domain": [*domain], "title": {"text": running, "standoff": 6},
            "anchor": f"y{name}",
        }  # fmt: skip
        layout[f"yaxis{name}"] = common | {
            "title": {"text": batch, "standoff": 4}, "anchor": f"x{name}",
        }  # fmt: skip
    return {"data": data, "layout": layout}


def _heading(text: str, x: float) -> Any:
    return {
        "text": text, "x": x, "xref": "paper", "xanchor": "left", "y": 1, "yref": "paper",
        "yanchor": "bottom", "yshift": 4, "showarrow": False, "font": {"size": 12},
    }  # fmt: skip


def _traces(canvas: Canvas, channels: Channels, step: int) -> list[Any]:
    traces: list[Any] = []
    at = channels.at(step)
    for which, name in enumerate(("", "2")):
        axes: Figure = {"xaxis": f"x{name}", "yaxis": f"y{name}"}
        running, batch = at[which]
        channel = canvas.words(say("channel"))
        traces.append(axes | {
            "mode": "markers", "x": canvas.numbers(running), "y": canvas.numbers(batch),
            "marker": {"color": COLORS[0], "size": 6, "opacity": 0.75},
            "hovertemplate": f"{channel} %{{pointNumber}}<br>%{{x:.4g}}<br>%{{y:.4g}}",
            "name": "",
        })  # fmt: skip
        low, high = channels.extent(which)
        traces.append(axes | {
            "mode": "lines", "x": [low, high], "y": [low, high], "hoverinfo": "skip",
            "hovertemplate": None,
            "line": {"color": QUIET, "dash": "dash", "width": 1.25}, "name": "",
        })  # fmt: skip
    return traces


def frames(canvas: Canvas, channels: Channels) -> list[Any]:
    """The same figure's numbers at each step it can show."""
    shown: list[Any] = []
    for step in channels.steps:
        data: list[Any] = [
            {"x": trace["x"], "y": trace["y"]}
            for trace in _traces(canvas, channels, step)
            if isinstance(trace, dict)
        ]
        shown.append({"step": step, "data": data})
    return shown


def size(channels: Channels) -> int:
    """Numbers that all its steps hold together."""
    first: Any = channels.at(channels.steps[0]) if channels.steps else ()
    return len(channels.steps) * sum(len(part) for pair in first for part in pair)
