"""Series that follow from the statistics of a place, brought up to date when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from traindx.columns import FIELDS, Columns
from traindx.quantities import Quantity
from traindx.records import Site
from traindx.series import Series

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]


def bring_up_to_date(series: Series, known: Quantity, measured: Columns) -> None:
    """Append what was measured since; the newest may have merged with another micro-batch."""
    assert known.derive is not None
    series.count = measured.count
    behind = measured.additions - series.additions
    if not behind:
        return
    if len(series) and behind > len(measured) - len(series):
        series.replace_last(known.derive(measured[len(series) - 1]))
    for i in range(len(series), len(measured)):
        series.append(measured.steps[i], known.derive(measured[i]))
    series.count = measured.count
    series.additions = measured.additions


def following(known: Quantity, site: Site, measured: Columns, before: Series | None) -> Series:
    """The series of statistics that have been thinned, from the steps that are left.

    What `before` holds of it is not derived again, except for the newest, which may have merged.
    """
    import numpy as np

    assert known.derive is not None
    series = Series(known.name, site)
    series.thinnings = measured.thinnings
    if before is None or len(before) < 2:
        return series
    known_at = dict(list(before)[:-1])
    steps = [step for step in measured.steps if step in known_at]
    # What is left of it stands at the beginning, without gaps.
    if steps != measured.steps[: len(steps)].tolist():
        return series
    series.extend(np.array(steps, np.int64), np.array([known_at[step] for step in steps]))
    series.additions = measured.additions - (len(measured) - len(steps))
    return series


def derived(known: Quantity, rows: Reals) -> Reals:
    """What `known.derive` makes of each of many rows of statistics [..., fields], to the bit."""
    import numpy as np

    fields: dict[str, Reals] = dict(zip(FIELDS, np.moveaxis(rows, -1, 0), strict=True))
    with np.errstate(all="ignore"):
        return _OF_MANY[known.name.rpartition(".")[2]](fields)


def _std(of: dict[str, Reals]) -> Reals:
    import numpy as np

    # As `max(m2, 0.0)` does it, which keeps a NaN.
    above = np.where(of["m2"] < 0, 0.0, of["m2"])
    return np.sqrt(above / _some(of["count"]))


def _rms(of: dict[str, Reals]) -> Reals:
    import numpy as np

    return np.sqrt(of["mean"] * of["mean"] + of["m2"] / _some(of["count"]))


def _l2(of: dict[str, Reals]) -> Reals:
    import numpy as np

    return _rms(of) * np.sqrt(of["count"])


def _zero_fraction(of: dict[str, Reals]) -> Reals:
    return of["zeros"] / _some(of["sampled"])


def _field(name: str) -> Callable[[dict[str, Reals]], Reals]:
    return lambda of: of[name]


def _some(counts: Reals) -> Reals:
    """Counts, with NaN for none."""
    import numpy as np

    return np.where(counts == 0, np.nan, counts)


_OF_MANY: dict[str, Callable[[dict[str, Reals]], Reals]] = {
    "std": _std,
    "rms": _rms,
    "l2": _l2,
    "zero_fraction": _zero_fraction,
    **{name: _field(name) for name in ("mean", "min", "max", "count", "nonfinite")},
}
"""The statistics of `quantities`, of many rows at once."""
