"""A quantity of every layer at every step, as a heatmap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from traindx.messages import Message, say
from traindx.records import Site
from traindx.report.figures.canvas import Canvas, Figure, faulty
from traindx.report.figures.panels import label
from traindx.report.figures.tables import Table
from traindx.report.figures.thinning import ABSENT, spread
from traindx.report.story import judged
from traindx.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ROWS = 1200
ZERO = "#b9bdc0"
BROKEN = "#e8590c"
_SIGNED = ("mean", "min", "max")


def layers_figure(canvas: Canvas, quantity: str) -> Figure | None:
    """Layers in network order over measured steps; None if it was not measured."""
    table = canvas.table(quantity)
    if table is None:
        return None
    rows = _shown_rows(canvas.run, table)
    values = table.values[[table.places[site] for site in rows]]
    names = unlike([label(row_name(canvas.run, site)) for site in rows])
    height = min(860, max(260, 90 + 20 * len(rows)))
    steps = [*map(str, table.steps.tolist())]
    axis: Figure = {"type": "category", "showgrid": False}
    layout: Figure = {
        "height": height,
        "margin": {"l": 10, "r": 10, "t": 10, "b": 44},
        "dragmode": False,
        "xaxis": axis | {"title": {"text": canvas.words(say("measured step")), "standoff": 6}}
        | ticks(canvas, steps, 14),
        "yaxis": axis | {"autorange": "reversed", "automargin": True}
        | ticks(canvas, [shortened(name, 32) for name in names], (height - 90) // 18),
    }  # fmt: skip
    return {"data": _traces(canvas, table, values, names), "layout": layout}


def _traces(
    canvas: Canvas, table: Table, values: NDArray[np.float64], names: list[str]
) -> list[Any]:
    where = "%{y}<br>" + canvas.words(say("step")) + " %{x}<br>"
    common: Figure = {
        "type": "heatmap",
        "x": canvas.texts([*map(str, table.steps.tolist())]),
        "y": canvas.texts(names),
        "hoverongaps": False,
    }
    signed = is_signed(table.quantity.name, values)
    main = _signed(values) if signed else _decades(values)
    main["z"] = canvas.matrix(values, "values" if signed else "log10")
    main["customdata"] = canvas.matrix(values, "values")
    main["hovertemplate"] = where + table.quantity.name + " %{customdata:.4g}<extra></extra>"
    traces: list[Any] = [common | main]
    if not signed and (values == 0).any():
        zero = _one_color(ZERO, where + "0") | {"z": canvas.matrix(values, "zero")}
        traces.append(common | zero)
    if not np.isfinite(values).all():
        words = where + canvas.words(say("NaN or infinite"))
        traces.append(common | _one_color(BROKEN, words) | {"z": canvas.matrix(values, "broken")})
    return traces


def is_signed(quantity: str, values: NDArray[np.float64]) -> bool:
    """Whether values lie on both sides of 0, so that their logarithm says nothing."""
    finite = np.isfinite(values) & (values != ABSENT)
    return quantity.rpartition(".")[2] in _SIGNED or bool((values[finite] < 0).any())


def _signed(values: NDArray[np.float64]) -> Figure:
    """Blue below 0 and orange above it, to the 98th percentile, so that one peak hides nothing."""
    finite = np.abs(values[np.isfinite(values) & (values != ABSENT)])
    most = float(np.quantile(finite, 0.98)) or float(finite.max()) if len(finite) else 1.0
    scale: Any = [[0, "#2166ac"], [0.25, "#92c5de"], [0.5, "#f7f7f7"], [0.75, "#f4a582"],
                   [1, "#b2182b"]]  # fmt: skip
    bar: Any = {"thickness": 12, "outlinewidth": 0, "len": 1, "exponentformat": "power"}
    most = most or 1.0
    return {"colorscale": scale, "zmin": -most, "zmax": most, "colorbar": bar}


def _decades(values: NDArray[np.float64]) -> Figure:
    """Every decade, or every second or third where there are many, written as powers of ten."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not len(positive):
        return {"colorscale": "Cividis", "showscale": False}
    low, high = math.log10(positive.min()), math.log10(positive.max())
    every = max(1, math.ceil((high - low) / 6))
    places = list(range(math.ceil(low), math.floor(high) + 1, every))
    texts = [f"10<sup>{place}</sup>" for place in places]
    if len(places) < 2:
        places, texts = [low, high], [f"{10**low:.2g}", f"{10**high:.2g}"]
    bar: Any = {"thickness": 12, "outlinewidth": 0, "len": 1, "tickvals": [*places],
                 "ticktext": [*texts]}  # fmt: skip
    return {"colorscale": "Cividis", "colorbar": bar}


def _one_color(color: str, words: str) -> Figure:
    return {
        "colorscale": [[0, color], [1, color]], "showscale": False,
        "hovertemplate": f"{words}<extra></extra>",
    }  # fmt: skip


def unlike(names: Sequence[str]) -> list[str]:
    """The names, those that were there before told apart by a space."""
    seen: set[str] = set()
    different: list[str] = []
    for name in names:
        while name in seen:
            name = f"{name} "
        seen.add(name)
        different.append(name)
    return different


def ticks(canvas: Canvas, labels: Sequence[str], most: int) -> dict[str, Any]:
    """Names at places that are counted from 0, at most so many of them."""
    every = max(1, math.ceil(len(labels) / max(1, most)))
    places = list(range(0, len(labels), every))
    return {"tickmode": "array", "tickvals": places, "ticktext": [labels[i] for i in places]}


def shortened(label: str, most: int) -> str:
    """The end of a path, which tells layers apart; labels are escaped, and no entity is cut."""
    text = label.replace("&lt;", "<").replace("&amp;", "&")
    short = f"…{text[1 - most :]}" if len(text) > most else text
    return short.replace("&", "&amp;").replace("<", "&lt;")


def row_name(run: Run, site: Site) -> str:
    """A site's path, with its model where there are several."""
    own = site.fqn or site.model or "run"
    return f"{site.model} · {own}" if len(run.models) > 1 and site.fqn else own


def _shown_rows(run: Run, table: Table) -> list[Site]:
    """Rows with a finding first, the others evenly spaced, all in network order."""
    if len(table.sites) <= MOST_ROWS:
        return list(table.sites)
    bad = faulty(judged(run).findings)
    bad |= {s for s in table.sites if Site(s.model, s.fqn.rpartition(".")[0]) in bad}
    telling = spread([site for site in table.sites if site in bad], MOST_ROWS)
    chosen = set(telling)
    others = [site for site in table.sites if site not in chosen]
    chosen |= set(spread(others, MOST_ROWS - len(telling)))
    return [site for site in table.sites if site in chosen]


def left_out(run: Run, table: Table) -> list[Message]:
    """What the heatmap does not show."""
    said: list[Message] = []
    if table.is_thinned:
        shown, measured = len(table.steps) // 2, table.measured
        said.append(thinned(shown, measured))
    rows = len(table.sites)
    if rows > MOST_ROWS:
        said.append(say("Shows {shown} of {rows} rows, those with findings among them.",
                        shown=MOST_ROWS, rows=rows))  # fmt: skip
    return said


def thinned(stretches: int, measured: int) -> Message:
    """What to say of curves that do not show every measured step."""
    return say(
        "{measured} measured steps are drawn as {stretches} stretches, by the least and the "
        "greatest value of each.",
        measured=measured,
        stretches=stretches,
    )
