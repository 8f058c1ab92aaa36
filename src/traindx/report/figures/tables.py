"""A quantity of every site at every measured step, as one table of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from traindx.quantities import QUANTITIES, Quantity
from traindx.records import Point, Site
from traindx.report.figures.thinning import ABSENT, stretches
from traindx.report.layers import sites
from traindx.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Table:
    """A quantity over sites and steps.

    Attributes:
        quantity: What was measured.
        sites: Its rows: in network order, then those that no model describes.
        steps: Its columns.
        values: Sites x steps; `ABSENT` where nothing was measured.
        measured: Steps measured, of which `steps` may be fewer.
        places: The row of each site.
    """

    quantity: Quantity
    sites: tuple[Site, ...]
    steps: NDArray[np.int64]
    values: Floats
    measured: int
    places: Mapping[Site, int]

    @property
    def is_thinned(self) -> bool:
        """Whether it shows fewer columns than were measured."""
        return self.measured > len(self.steps)

    def thinned(self, most: int) -> Table:
        """The same with at most about this many columns, extremes kept."""
        steps, values = stretches(self.steps, self.values, most)
        return replace(self, steps=steps, values=values)

    def row(self, site: Site) -> tuple[NDArray[np.int64], Floats] | None:
        """The steps and values of one site; None if it is not in the table."""
        at = self.places.get(site)
        if at is None:
            return None
        values = self.values[at]
        there = values != ABSENT
        return self.steps[there], values[there]


def table(run: Run, name: str) -> Table | None:
    """Everything measured of a quantity; None if nothing was."""
    return next(iter(tables(run, [name])), None)


def tables(run: Run, names: Sequence[str], most: int | None = None) -> Iterator[Table]:
    """The tables of several quantities, of those that were measured, thinned to `most` columns."""
    order = [site for model in run.models.values() for site in sites(model)]
    groups: dict[Point | None, list[Quantity]] = {}
    for name in names:
        groups.setdefault(QUANTITIES[name].point, []).append(QUANTITIES[name])
    for point, quantities in groups.items():
        found = _of_point(run, point, quantities) if point else _of_scalars(run, quantities)
        for quantity in quantities:
            if rows := found.get(quantity.name):
                known = [site for site in order if site in rows]
                described = set(known)
                others = [site for site in rows if site not in described]
                whole = _joined(quantity, [*known, *others], rows)
                yield whole.thinned(most) if most else whole


def measured_quantities(run: Run) -> list[str]:
    """The quantities with one number a step of which something was measured."""
    return [name for name, quantity in QUANTITIES.items() if _is_measured(run, quantity)]


def _is_measured(run: Run, quantity: Quantity) -> bool:
    if quantity.entries:
        return False
    if quantity.point is None:
        return bool(run.series(quantity.name))
    # By one quantity of the point: asking derives its series, which costs where there are many.
    return bool(run.sites_of(quantity.point))


Rows = dict[Site, tuple["NDArray[np.int64]", "Floats"]]
Fields = Mapping[str, "Floats"]
"""The fields of the statistics of one place, each over the steps."""


def _of_scalars(run: Run, quantities: Sequence[Quantity]) -> dict[str, Rows]:
    return {
        quantity.name: {s.site: (s.steps, s.values) for s in run.series(quantity.name) if len(s)}
        for quantity in quantities
    }


def _of_point(run: Run, point: Point, quantities: Sequence[Quantity]) -> dict[str, Rows]:
    """All of them at once, since taking statistics apart costs more than the arithmetic."""
    found: dict[str, Rows] = {quantity.name: {} for quantity in quantities}
    for site in run.sites_of(point):
        measured = run.columns(point, site)
        if measured is None:
            continue
        steps = np.array(measured.steps, np.int64)
        fields = measured.fields()
        for quantity in quantities:
            with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
                values = _STATISTICS[quantity.name.rpartition(".")[2]](fields)
            looked = values != ABSENT
            if looked.all():
                found[quantity.name][site] = steps, values
            elif looked.any():
                found[quantity.name][site] = steps[looked], values[looked]
    return found


def _rms(of: Fields) -> Floats:
    return np.sqrt(of["mean"] * of["mean"] + of["m2"] / _count(of))


def _std(of: Fields) -> Floats:
    return np.sqrt(np.maximum(of["m2"], 0.0) / _count(of))


def _count(of: Fields) -> Floats:
    return np.where(of["count"] > 0, of["count"], np.nan)


def _zero_fraction(of: Fields) -> Floats:
    """Absent where no elements were looked at: of a gradient nobody counts zeros."""
    if not of["sampled"].any():
        return np.full(len(of["sampled"]), ABSENT)
    return np.where(of["sampled"] > 0, of["zeros"] / of["sampled"], ABSENT)


# The same as `Quantity.derive`, of many steps at once; a test holds them equal.
_STATISTICS: dict[str, Callable[[Fields], Floats]] = {
    "mean": lambda of: of["mean"],
    "std": _std,
    "rms": _rms,
    "l2": lambda of: _rms(of) * np.sqrt(of["count"]),
    "min": lambda of: of["min"],
    "max": lambda of: of["max"],
    "zero_fraction": _zero_fraction,
    "count": lambda of: of["count"],
    "nonfinite": lambda of: of["nonfinite"],
}


def _joined(quantity: Quantity, order: Sequence[Site], rows: Rows) -> Table:
    steps = rows[order[0]][0]
    if not all(np.array_equal(rows[site][0], steps) for site in order):
        steps = np.unique(np.concatenate([rows[site][0] for site in order]))
    values = np.full((len(order), len(steps)), ABSENT)
    for i, site in enumerate(order):
        own, numbers = rows[site]
        if len(own) == len(steps):
            values[i] = numbers
        else:
            values[i, np.searchsorted(steps, own)] = numbers
    places = {site: i for i, site in enumerate(order)}
    return Table(quantity, tuple(order), steps, values, len(steps), places)
