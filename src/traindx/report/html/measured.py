"""What was measured at one site, looked up without deriving the steps that are not shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from traindx.quantities import Quantity
from traindx.records import Site
from traindx.run import Run


def steps_of(run: Run, quantity: Quantity, site: Site) -> Sequence[int]:
    """The steps at which a quantity was measured there."""
    if quantity.point is None:
        series = run.at(quantity.name, site)
        return [step for step, _ in series] if series else ()
    return tuple(run.stats(quantity.point, site))


def values_of(run: Run, quantity: Quantity, site: Site, steps: Iterable[int]) -> list[float | None]:
    """Its values at these steps, None where it was not measured."""
    if quantity.point is None or quantity.derive is None:
        series = run.at(quantity.name, site)
        return [series.at(step) if series else None for step in steps]
    stats, derive = run.stats(quantity.point, site), quantity.derive
    return [derive(stats[step]) if step in stats else None for step in steps]


def last_of(run: Run, quantity: Quantity, site: Site) -> float | None:
    """Its last value, None if it was never measured there."""
    return next(iter(values_of(run, quantity, site, steps_of(run, quantity, site)[-1:])), None)
