"""What was measured in a run: numbers by place over the steps, and those that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from traindx.columns import Columns
from traindx.derived import bring_up_to_date, derived, following
from traindx.ledger import NEVER, Layout, Ledger, Newest
from traindx.quantities import Quantity
from traindx.records import Bundle, Point, Record, Site
from traindx.series import Series, extend
from traindx.thinning import Pins

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

TELLING = ("loss", "param.rms")
"""Quantities that end well or not: where one stops being finite, what was before must stay."""
LONG = 8
"""Numbers from which on a row of them is taken as a whole: a short one costs less one by one."""
_NONFINITE = 5
"""Where in the fields of a record the number of elements stands that are not finite."""


class Measured:
    """The scalars and records of a run.

    Args:
        pins: Steps that are kept whatever is thinned.
        breaks: Told of a step at which something that was finite is so no more.

    Attributes:
        loss_step: The last step with a loss, which is written once the step is complete.
    """

    def __init__(self, pins: Pins, breaks: Callable[[int], None]) -> None:
        self.loss_step = -1
        self._breaks = breaks
        self._scalars: Ledger[str, Series] = Ledger(lambda q, site: Series(q, site, pins), extend)
        self._records: Ledger[Point, Columns] = Ledger(lambda _p, _s: Columns(pins), _extend, 8)
        self._derived: dict[str, dict[Site, Series]] = {}
        self._whole: dict[str, tuple[int, Reals]] = {}
        self._derived_at: dict[str, int] = {}  # after how many additions to its point

    # -- writing ---------------------------------------------------------------------------------

    def file_all(self) -> None:
        """File all that waits; from here on other steps are pinned."""
        self._scalars.file_all()
        self._records.file_all()

    def add_record(self, record: Record) -> None:
        """Several records of one place in one step (micro-batches) merge into one."""
        columns = self._records.open(record.point, record.site)
        was_broken = columns.is_broken
        columns.add(record.step, record.stats)
        self._added(record.point, record.site, record.step, columns, was_broken=was_broken)

    def add_row(self, point: Point, site: Site, step: int, row: Sequence[float]) -> None:
        """Take a record as the numbers of `columns.FIELDS`."""
        columns = self._records.open(point, site)
        was_broken = columns.is_broken
        columns.add_row(step, row)
        self._added(point, site, step, columns, was_broken=was_broken)

    def _added(
        self, point: Point, site: Site, step: int, columns: Columns, *, was_broken: bool
    ) -> None:
        self._records.set_newest(point, site, step, columns.last_row)
        if columns.is_broken and not was_broken:
            self._breaks(step)

    def add_number(self, quantity: str, site: Site, step: int, value: float) -> None:
        """Take a scalar."""
        series = self._scalars.open(quantity, site)
        if quantity in TELLING and not math.isfinite(value):
            was_finite = not len(series) or series.last_finite == series.step
            if was_finite:
                self._breaks(step)
        series.append(step, value)
        self._scalars.set_newest(quantity, site, step, value)
        if quantity == "loss":
            self.loss_step = max(self.loss_step, step)

    def add_numbers(
        self, quantity: str, site: Site, steps: NDArray[np.int64], values: Reals
    ) -> None:
        """Take many scalars of one place."""
        import numpy as np

        if quantity in TELLING and not np.isfinite(values).all():
            for step, value in zip(steps.tolist(), values.tolist(), strict=True):
                self.add_number(quantity, site, step, value)
            return
        self._scalars.open(quantity, site).extend(steps, values)
        self._scalars.set_newest(quantity, site, int(steps[-1]), float(values[-1]), len(steps))
        if quantity == "loss":
            self.loss_step = max(self.loss_step, int(steps[-1]))

    def add_bundle(self, bundle: Bundle) -> None:
        """Take the records and scalars of a step."""
        import numpy as np

        counts = np.reshape(np.array(bundle.counts, np.float64), (-1, 4))
        moments = np.reshape(np.array(bundle.moments, np.float64), (-1, 4))
        self.add_rows(bundle.places, bundle.step, counts, moments)
        self.add_scalars(bundle.names, bundle.step, np.array(bundle.values, np.float64))

    def add_rows(
        self, places: tuple[tuple[Point, Site], ...], step: int, counts: Any, moments: Reals
    ) -> None:
        """Take the records of a step, all of them at once.

        Args:
            places: What was measured where.
            step: The step.
            counts: [n, 4]: count, nonfinite, sampled, zeros.
            moments: [n, 4]: mean, m2, min, max.
        """
        import numpy as np

        rows = np.concatenate([counts[:, :1], moments, counts[:, 1:]], axis=1, dtype=np.float64)
        layout = self._records.layout(places) if len(places) >= LONG else Layout((), ())
        broken = rows[:, _NONFINITE] != 0
        # Records of one place in one step merge, one by one.
        if not layout.groups or not self._records.is_later(layout, step):
            for (point, site), row in zip(places, rows.tolist(), strict=True):
                self.add_row(point, site, step, row)
            return
        if broken.any() and any(
            (broken[columns] & ~(newest.values[:, _NONFINITE] > 0)).any()
            for _, columns, newest in self._records.before(layout)
        ):
            self._breaks(step)
        self._records.put(layout, step, rows)

    def add_scalars(self, names: tuple[tuple[str, Site], ...], step: int, values: Reals) -> None:
        """Take the scalars of a step [n], all of them at once."""
        import numpy as np

        layout = self._scalars.layout(names) if len(names) >= LONG else Layout((), ())
        if not layout.groups:
            for (quantity, site), value in zip(names, values.tolist(), strict=True):
                self.add_number(quantity, site, step, value)
            return
        bad = ~np.isfinite(values)
        if bad.any() and any(
            (bad[columns] & ((newest.steps == NEVER) | np.isfinite(newest.values))).any()
            for quantity, columns, newest in self._scalars.before(layout)
            if quantity in TELLING
        ):
            self._breaks(step)
        self._scalars.put(layout, step, values)
        if [group for group in layout.groups if group[0] == "loss"]:
            self.loss_step = max(self.loss_step, step)

    # -- reading ---------------------------------------------------------------------------------

    def series(self, known: Quantity) -> dict[Site, Series]:
        """Every series of a quantity, in the order its sites were first measured."""
        if known.point is None:
            return self._scalars.of(known.name)
        if not self._is_derived(known):
            for site in self._records.of(known.point):
                self._derive(known, site)
            self._derived_at[known.name] = self._records.additions(known.point)
        return self._derived.get(known.name, {})

    def at(self, known: Quantity, site: Site) -> Series | None:
        """The series of a quantity at one site, None if it was not measured there."""
        if known.derive is None:
            return self._scalars.of(known.name).get(site)
        return self._derive(known, site)

    def _is_derived(self, known: Quantity) -> bool:
        """Whether every series of a quantity is up to date."""
        additions = self._records.additions(known.point) if known.point else 0
        return self._derived_at.get(known.name) == additions

    def _derive(self, known: Quantity, site: Site) -> Series | None:
        """The series of a quantity that follows from tensor statistics, brought up to date."""
        if self._is_derived(known):
            return self._derived.get(known.name, {}).get(site)
        assert known.point is not None
        assert known.derive is not None
        measured = self._records.of(known.point).get(site)
        if measured is None:
            return None
        sites = self._derived.setdefault(known.name, {})
        series = sites.get(site)
        if series is None or series.thinnings != measured.thinnings:
            series = sites[site] = following(known, site, measured, series)
        bring_up_to_date(series, known, measured)
        return series

    def columns(self, point: Point) -> dict[Site, Columns]:
        """The statistics at one point, in the order the sites were first measured."""
        return self._records.of(point)

    def additions(self, known: Quantity) -> int:
        """How often something was added to a quantity."""
        if known.point is None:
            return self._scalars.additions(known.name)
        return self._records.additions(known.point)

    @property
    def num_quantities(self) -> int:
        """How many kinds of numbers were added so far; it never falls."""
        return self._scalars.num_quantities + self._records.num_quantities

    def newest(self, known: Quantity, sites: tuple[Site, ...] | None, model: str | None) -> Newest:
        """The newest numbers of a quantity at these sites, at a model's, or at all."""
        if known.point is None:
            return self._scalars.newest(known.name, sites, model)
        return self._records.newest(known.point, sites, model, partial(self._derive_all, known))

    def _derive_all(self, known: Quantity, rows: Reals) -> Reals:
        """What follows from the newest rows of all sites, once after each addition."""
        additions = self._records.additions(known.point) if known.point else 0
        found = self._whole.get(known.name)
        if found is None or found[0] != additions:
            found = self._whole[known.name] = additions, derived(known, rows)
        return found[1]

    def recent(self, known: Quantity, sites: tuple[Site, ...], window: int) -> Reals | None:
        """The last numbers of some sites together [window, n]; None if they are not aligned."""
        if known.point is None:
            return self._scalars.recent(known.name, sites, window)
        rows = self._records.recent(known.point, sites, window)
        return None if rows is None else derived(known, rows)


def _extend(places: Sequence[Columns], steps: NDArray[np.int64], rows: Reals) -> None:
    """Add the `FIELDS` [n, m, fields] of m later steps to those of n places."""
    for columns, own in zip(places, rows, strict=True):
        columns.extend(steps, own)
