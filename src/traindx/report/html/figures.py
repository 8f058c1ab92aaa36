"""Curves over steps, as figures in plotly's JSON form: the same in the page and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from traindx.facts import Json
from traindx.findings import Finding
from traindx.quantities import QUANTITIES
from traindx.records import EventKind, Site
from traindx.report.html.thinning import extremes, spread
from traindx.report.story import number
from traindx.report.untrusted import plain
from traindx.run import Run, Series

Figure = dict[str, Json]

# Okabe and Ito's colours, told apart by colour-blind eyes, on light and on dark ground.
_COLORS = ("#2b7bba", "#d55e00", "#009e73", "#cc79a7")
_QUIET = "#8a9299"
_MOST_MARKS = 60


def label(text: str) -> str:
    """User text for plotly, which would read `<b>` or `<a href>` as markup."""
    return plain(text).replace("&", "&amp;").replace("<", "&lt;")


def loss_figure(run: Run, most: int) -> Json:
    """The loss over steps with a mark at each evaluation; None if no loss was recorded."""
    curves = run.series("loss")
    if not curves:
        return None
    marks = sorted({event.step for event in run.events(EventKind.EVALUATION)})
    figure = _figure(run, curves, most)
    _shapes(figure).extend(_mark(step) for step in spread(marks, _MOST_MARKS))
    caption = "Dotted lines: evaluation passes." if marks else ""
    return {"title": "loss", "caption": _caption(caption, curves, most), "figure": figure}


def evidence_figures(run: Run, finding: Finding, most: int) -> Iterator[Json]:
    """The quantities that show a finding, over steps, with the steps it was seen at."""
    for quantity in finding.evidence.series:
        curves = _curves(run, quantity, finding.evidence.site)
        if curves:
            name, threshold = _threshold(quantity, finding)
            figure = _figure(run, curves, most, threshold)
            _shapes(figure).append(_band(finding))
            # Up to the formula, which the quantity's page has.
            meaning = QUANTITIES[quantity].meaning.partition(":")[0].rstrip(".")
            caption = f"{meaning}. Shaded: where the rule saw it."
            if threshold is not None:
                caption += f" Dashed: threshold {name} {number(threshold)}."
            yield {
                "title": quantity,
                "caption": _caption(caption, curves, most),
                "figure": figure,
            }


def _curves(run: Run, quantity: str, site: Site) -> list[Series]:
    """At the site; else of the parameters it holds; else of its model as a whole, as the loss."""
    exact = run.at(quantity, site) or run.at(quantity, Site(site.model))
    of_model = [s for s in run.series(quantity) if site.model in s.site.model.split("+")]
    held = [s for s in of_model if s.site.fqn.rpartition(".")[0] == site.fqn and s.site.fqn]
    whole = [s for s in of_model if not s.site.fqn]
    return [exact] if exact else held or whole[:1]


def _threshold(quantity: str, finding: Finding) -> tuple[str, float | None]:
    """The threshold a quantity is held against: `gap` is that of `norm.running_gap`."""
    statistic = quantity.rpartition(".")[2]
    for name, value in finding.thresholds.items():
        if name == statistic or statistic.endswith(f"_{name}"):
            return plain(name), value
    return "", None


def _figure(
    run: Run, curves: Sequence[Series], most: int, threshold: float | None = None
) -> Figure:
    traces = [_trace(curve, i, most, named=len(curves) > 1) for i, curve in enumerate(curves)]
    values = [value for curve in curves for _, value in curve if math.isfinite(value)]
    if threshold is not None:
        traces.append(_level(curves[0], threshold))
        values.append(threshold)
    shapes: list[Json] = [s for curve in curves for s in _first_nonfinite(curve)]
    layout: dict[str, Json] = {
        "height": 230,
        "margin": {"l": 58, "r": 14, "t": 8, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": len(curves) > 1,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "hovermode": "closest",
        "dragmode": False,
        "xaxis": _steps(run.steps),
        "yaxis": _axis(values),
        "shapes": shapes,
    }
    return {"data": [*traces], "layout": layout}


def _shapes(figure: Figure) -> list[Json]:
    layout = figure["layout"]
    assert isinstance(layout, dict)
    shapes = layout["shapes"]
    assert isinstance(shapes, list)
    return shapes


def _steps(count: int) -> dict[str, Json]:
    """The same extent in every figure, so that they can be compared down the page."""
    margin = 0.5 + 0.01 * count
    title: Json = {"text": "step", "standoff": 6}
    return {"title": title, "zeroline": False, "range": [-margin, count - 1 + margin]}


def _axis(values: Sequence[float]) -> dict[str, Json]:
    """Logarithmic where positive values span more than two decades."""
    axis: dict[str, Json] = {"zeroline": False, "exponentformat": "power", "nticks": 6}
    if values and min(values) > 0 and max(values) > 100 * min(values):
        decades = math.log10(max(values) / min(values))
        # Plotly sets powers a quarter larger than other ticks.
        small: Json = {"size": 9.6}
        return axis | {"type": "log", "dtick": max(1, math.ceil(decades / 5)), "tickfont": small}
    return axis


def _trace(series: Series, i: int, most: int, *, named: bool) -> dict[str, Json]:
    points = extremes(list(series), most)
    color = _COLORS[i % len(_COLORS)]
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(points) <= _MOST_MARKS else "lines",
        "name": label(str(series.site)) if named else "",
        "x": [step for step, _ in points],
        "y": [_finite(value) for _, value in points],
        "line": {"color": color, "width": 2},
        "marker": {"color": color, "size": 4},
        "hovertemplate": "step %{x}<br>%{y:.4g}",
    }


def _finite(value: float) -> Json:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _level(series: Series, threshold: float) -> dict[str, Json]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "",
        "x": [series.first_step, series.step],
        "y": [_finite(threshold)] * 2,
        "line": {"color": _QUIET, "width": 1.5, "dash": "dash"},
        "hovertemplate": f"threshold {number(threshold)}",
        "showlegend": False,
    }


def _first_nonfinite(series: Series) -> Iterator[dict[str, Json]]:
    first = next((point for point in series if not math.isfinite(point[1])), None)
    if first is not None:
        text = f"{number(first[1])} from step {first[0]}"
        yield _vertical(first[0], _COLORS[1], "solid") | {"label": _tag(text)}


def _tag(text: str) -> Json:
    return {
        "text": text,
        "textposition": "end",
        "textangle": 0,
        "xanchor": "right",
        "yanchor": "top",
    }


def _mark(step: int) -> dict[str, Json]:
    return _vertical(step, _QUIET, "dot")


def _vertical(step: int, color: str, dash: str) -> dict[str, Json]:
    line: dict[str, Json] = {"color": color, "width": 1, "dash": dash}
    return {
        "type": "line",
        "yref": "paper",
        "x0": step,
        "x1": step,
        "y0": 0,
        "y1": 1,
        "line": line,
        "layer": "below",
    }


def _band(finding: Finding) -> dict[str, Json]:
    return {
        "type": "rect",
        "yref": "paper",
        "x0": finding.first_step,
        "x1": finding.last_step,
        "y0": 0,
        "y1": 1,
        "fillcolor": _COLORS[0],
        "opacity": 0.09,
        "line": {"width": 1, "color": _COLORS[0]},
        "layer": "below",
    }


def _caption(text: str, curves: Sequence[Series], most: int) -> str:
    longest = max(map(len, curves))
    if longest <= most:
        return text
    return f"{text} Drawn from {longest} points by their extremes.".strip()
