"""A quantity of every layer at every step, for the heatmap."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from traindx.facts import Json
from traindx.quantities import QUANTITIES, Quantity
from traindx.records import Site
from traindx.report.html.figures import label
from traindx.report.html.measured import steps_of, values_of
from traindx.report.html.thinning import spread
from traindx.report.layers import sites
from traindx.report.story import judged
from traindx.run import Run

SHOWN = (
    "grad.rms",
    "output.rms",
    "output_grad.rms",
    "param.rms",
    "update.ratio",
    "norm.running_gap",
)
"""The quantities offered, the first that was measured on top."""


def grids(run: Run, most_steps: int, most_rows: int) -> Iterator[Json]:
    """One grid for each of the shown quantities that was measured."""
    order = [site for model in run.models.values() for site in sites(model)]
    for name in SHOWN:
        grid = _grid(run, QUANTITIES[name], order, most_steps, most_rows)
        if grid:
            yield grid


def _grid(
    run: Run, quantity: Quantity, order: Sequence[Site], most_steps: int, most_rows: int
) -> dict[str, Json]:
    measured = {site: steps_of(run, quantity, site) for site in order}
    rows = [site for site, steps in measured.items() if steps]
    columns = sorted({step for site in rows for step in measured[site]})
    if not rows:
        return {}
    shown_rows = _chosen(rows, _faulty(run), most_rows)
    shown_columns = spread(columns, most_steps)
    return {
        "quantity": quantity.name,
        "unit": quantity.unit,
        "meaning": quantity.meaning,
        "rows": [label(_name(run, site)) for site in shown_rows],
        "steps": [*shown_columns],
        "values": [
            [_short(value) for value in values_of(run, quantity, site, shown_columns)]
            for site in shown_rows
        ],
        "left_out": _left_out(rows, shown_rows, columns, shown_columns),
    }


def _short(value: float | None) -> Json:
    """Three digits are more than a colour shows; non-finite values as JSON can hold them."""
    if value is None:
        return None
    text = f"{value:.3g}"
    return float(text) if math.isfinite(value) else text


def _faulty(run: Run) -> set[Site]:
    return {finding.evidence.site for finding in judged(run).findings}


def _chosen(rows: Sequence[Site], faulty: set[Site], most: int) -> list[Site]:
    """Rows with a finding first, the others evenly spaced, all in network order."""
    if len(rows) <= most:
        return list(rows)
    telling = spread([site for site in rows if _is_faulty(site, faulty)], most)
    others = [site for site in rows if site not in set(telling)]
    kept = {*telling, *spread(others, most - len(telling))}
    return [site for site in rows if site in kept]


def _is_faulty(site: Site, faulty: set[Site]) -> bool:
    return site in faulty or Site(site.model, site.fqn.rpartition(".")[0]) in faulty


def _name(run: Run, site: Site) -> str:
    own = site.fqn or site.model
    return f"{site.model} · {own}" if len(run.models) > 1 else own


def _left_out(
    rows: Sequence[Site], shown_rows: Sequence[Site], columns: Sequence[int], shown: Sequence[int]
) -> str:
    parts: list[str] = []
    if len(shown) < len(columns):
        parts.append(f"{len(shown)} of {len(columns)} measured steps, evenly spaced,")
    if len(shown_rows) < len(rows):
        parts.append(f"{len(shown_rows)} of {len(rows)} rows, those with findings among them")
    return f"Shows {' and '.join(parts)}." if parts else ""
