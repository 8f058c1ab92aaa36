"""A quantity along the depth of a network at one step, with what the theory says of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from traindx.facts import ModelFacts
from traindx.messages import Message, say
from traindx.quantities import QUANTITIES
from traindx.records import Site
from traindx.report.figures import theory
from traindx.report.figures.canvas import Canvas, Figure
from traindx.report.figures.layers import shortened, ticks
from traindx.report.figures.panels import COLORS, QUIET, label, logarithmic
from traindx.report.figures.thinning import spread
from traindx.report.layers import Layer, layers
from traindx.report.story import at_step
from traindx.run import Run

OFFERED = ("output.rms", "grad.rms", "output_grad.rms", "update.ratio")
_MOST_STEPS = 25

Profile = dict[Site, float]


def site_of(quantity: str, layer: Layer) -> Site | None:
    """Where a layer shows a quantity: at itself, or at its largest parameter."""
    if quantity.startswith(("grad", "applied_grad", "param", "update")):
        return layer.main_param
    return layer.site


class Depth:
    """A quantity over the layers of one model, at some of the steps it was measured at.

    Args:
        run: The run.
        model: The model.
        quantity: What to show.
        at: Look at this step alone.
    """

    def __init__(
        self, run: Run, model: ModelFacts, quantity: str, *, at: int | None = None
    ) -> None:
        self.run = run
        self.model = model
        self.quantity = quantity
        order = layers(model)
        self.places = {layer.site: i for i, layer in enumerate(order, start=1)}
        steps_of = {layer.site: _steps(run, quantity, site, at) for layer in order
                    if (site := site_of(quantity, layer))}  # fmt: skip
        self.layers = [layer for layer in order if steps_of.get(layer.site)]
        self.order = order
        measured = sorted({step for layer in self.layers for step in steps_of[layer.site]})
        self.steps = spread(measured, _MOST_STEPS)
        self.measured = measured
        self.names = [label(layer.site.fqn or layer.site.model) for layer in self.layers]
        self._profiles: dict[int, Profile] = {}

    def profile(self, step: int) -> Profile:
        """Its value at each layer."""
        if step not in self._profiles:
            found = ((layer.site, self._value(site_of(self.quantity, layer), step))
                     for layer in self.layers)  # fmt: skip
            self._profiles[step] = {site: value for site, value in found if value is not None}
        return self._profiles[step]

    def _value(self, site: Site | None, step: int) -> float | None:
        return value_at(self.run, self.quantity, site, step) if site else None

    def predicted(self, step: int) -> Profile:
        """What the theory says of it; empty where it says nothing."""
        if self.quantity == "output.rms":
            return self._fan_in(step)
        if self.quantity in ("grad.rms", "output_grad.rms"):
            return self._bound(step)
        return {}

    def _fan_in(self, step: int) -> Profile:
        params = {param.fqn: Site(self.model.name, param.fqn) for param in self.model.params}
        found = {site: value_at(self.run, "param.rms", site, step) for site in params.values()}
        weights = {site: value for site, value in found.items() if value is not None}
        given = value_at(self.run, "input.rms", Site(self.model.name), step)
        profile = self.profile(step)
        return theory.outputs(self.run, self.model, self.order, profile, weights, given, step)

    def _bound(self, step: int) -> Profile:
        bounds = theory.gradient_bounds(self.model, self.order)
        profile = self.profile(step)
        known = [site for site in bounds if profile.get(site, 0.0) > 0]
        if not known:
            return {}
        last = known[-1]
        anchor = math.log10(profile[last]) - bounds[last] if math.isfinite(profile[last]) else 0
        exponents = {site: anchor + bounds[site] for site in known}
        return {site: 10.0**e for site, e in exponents.items() if -300 < e < 300}

    @property
    def theory(self) -> Message | None:
        """What the dashed curve is and assumes; None where there is none."""
        if any(self.predicted(step) for step in self.steps[-1:]):
            return _FAN_IN if self.quantity == "output.rms" else _BOUND
        return None

    def theory_words(self) -> Message:
        """The same, or why there is none."""
        return self.theory or _no_theory(self.quantity)


_FAN_IN = say(
    "Dashed: the fan-in rule, sqrt(fan-in x weight RMS^2 x mean square of what the layer was given "
    "+ bias RMS^2). It assumes weights that are independent of each other with mean 0, and that "
    "each layer was given what the module called before it returned: a function between them "
    "(F.relu, a skip connection) is not seen."
)
_BOUND = say(
    "Dashed: how a bound on the gradient falls along the depth, 1/4 per sigmoid times the spectral "
    "norms of the weights, set at the last layer that has one. It bounds what arrives at a layer "
    "as a whole; a weight's own gradient also grows with the layer's input."
)


def _no_theory(quantity: str) -> Message:
    if quantity == "output.rms":
        return say(
            "No prediction is drawn: the fan-in rule needs linear or convolution layers that "
            "follow a measured module, and the RMS of their weights."
        )
    if quantity in ("grad.rms", "output_grad.rms"):
        return say(
            "No prediction is drawn: the theory bounds only gradients behind sigmoids, along "
            "paths on which the gain of every operation is known."
        )
    return say("No prediction is drawn: there is no theory of this quantity here.")


def _steps(run: Run, quantity: str, site: Site, at: int | None) -> Sequence[int]:
    if at is not None:
        return () if value_at(run, quantity, site, at) is None else (at,)
    point = QUANTITIES[quantity].point
    if point is not None:
        columns = run.columns(point, site)
        return columns.steps if columns else ()
    found = run.at(quantity, site)
    return [step for step, _ in found] if found else ()


def value_at(run: Run, quantity: str, site: Site, step: int) -> float | None:
    """A quantity at one site and step, without deriving it at the others."""
    known = QUANTITIES[quantity]
    if known.point is None or known.derive is None:
        found = run.at(quantity, site)
        return found.at(step) if found else None
    stats = run.stats_at(known.point, site, step)
    return known.derive(stats) if stats else None


def marked(canvas: Canvas, depth: Depth, site: Site, name: str) -> Figure | None:
    """A ring around the value at one site in the figure of the last step; None if it is not there.

    The site may be a layer or one of its parameters.
    """
    profile = depth.profile(depth.steps[-1])
    for i, layer in enumerate(depth.layers):
        value = profile.get(layer.site, math.nan)
        if site in (layer.site, site_of(depth.quantity, layer)) and math.isfinite(value):
            return {
                "type": "scatter",
                "showlegend": True,
                "mode": "markers",
                "name": name,
                "x": canvas.numbers(np.array([i])),
                "y": canvas.numbers(np.array([value])),
                "marker": {
                    "color": COLORS[1], "size": 14, "symbol": "circle-open", "line": {"width": 2.5},
                },
                "hoverinfo": "skip",
            }  # fmt: skip
    return None


def depth_figure(canvas: Canvas, depth: Depth, steps: Sequence[int]) -> Figure:
    """The profile at these steps, the last of them with its prediction."""
    names = depth.names
    data = [trace for i, step in enumerate(steps) for trace in _step(canvas, depth, step, i, steps)]
    values = np.array([value for step in steps for value in depth.profile(step).values()])
    positions = [*map(str, range(1, len(names) + 1))] if len(names) > 24 else None
    axis: Figure = {"showgrid": False, "automargin": True}
    title = say("layer, in network order") if positions else say("layer")
    layout: Figure = {
        "height": 340,
        "margin": {"l": 64, "r": 16, "t": 30, "b": 60},
        "dragmode": False,
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom"},
        "xaxis": axis | {"title": {"text": canvas.words(title), "standoff": 6}}
        | ticks(canvas, positions or [shortened(name, 14) for name in names], 24),
        "yaxis": {"zeroline": False, "exponentformat": "power"} | logarithmic(values, 6),
    }  # fmt: skip
    return {"data": [*data], "layout": layout}


def _step(
    canvas: Canvas, depth: Depth, step: int, i: int, steps: Sequence[int]
) -> list[dict[str, Any]]:
    chosen = i == len(steps) - 1
    color = COLORS[0] if chosen else QUIET
    profile = depth.profile(step)
    line = {
        "type": "scatter",
        "showlegend": True,
        "mode": "lines+markers",
        "name": canvas.words(at_step(step)),
        "x": canvas.numbers(np.arange(len(depth.layers))),
        "y": canvas.numbers(_row(depth, profile)),
        "line": {"color": color, "dash": "solid" if chosen else "dot"},
        "marker": {"color": color, "size": 5, "symbol": "circle" if chosen else "circle-open"},
        "text": canvas.texts(depth.names),
        "hovertemplate": "%{text}<br>%{y:.4g}",
    }
    predicted = depth.predicted(step) if chosen else {}
    if not predicted:
        return [line]
    said = say("fan-in rule") if depth.quantity == "output.rms" else say("sigmoid bound")
    dashed = {
        "type": "scatter",
        "showlegend": True,
        "mode": "lines+markers",
        "name": canvas.words(said),
        "x": canvas.numbers(np.arange(len(depth.layers))),
        "y": canvas.numbers(_row(depth, predicted)),
        "connectgaps": True,
        "line": {"color": COLORS[1], "dash": "dash"},
        "marker": {"color": COLORS[1], "size": 7, "symbol": "x-thin-open"},
        "text": canvas.texts(depth.names),
        "hovertemplate": "%{text}<br>%{y:.4g}",
    }
    return [line, dashed]


def _row(depth: Depth, profile: Profile) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([profile.get(layer.site, math.nan) for layer in depth.layers])


def frames(canvas: Canvas, depth: Depth) -> list[Any]:
    """The same figure's numbers at each step it can show."""
    shown: list[Any] = []
    for step in depth.steps:
        first = _step(canvas, depth, step, 1, (step, step))
        data: list[Any] = [{"y": trace["y"], "name": trace["name"]} for trace in first]
        shown.append({"step": step, "data": data})
    return shown


def models_with(run: Run, quantity: str) -> list[Depth]:
    """The profiles there are: models of which two layers or more were measured."""
    found = [Depth(run, model, quantity) for model in run.models.values()]
    return [depth for depth in found if len(depth.layers) > 1]
