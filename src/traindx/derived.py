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

    name = known.name.rpartition(".")[2]
    if name in _AT:
        return rows[..., _AT[name]]
    with np.errstate(all="ignore"):
        return _OF_MANY[name](rows)


_AT = {name: i for i, name in enumerate(FIELDS)}
_COUNT, _MEAN, _M2 = (_AT[name] for name in ("count", "mean", "m2"))


def _std(rows: Reals) -> Reals:
    import numpy as np

    m2 = rows[..., _M2]
    # As `max(m2, 0.0)` does it, which keeps a NaN.
    return np.sqrt(np.where(m2 < 0, 0.0, m2) / _some(rows[..., _COUNT]))


def _rms(rows: Reals) -> Reals:
    import numpy as np

    mean = rows[..., _MEAN]
    return np.sqrt(mean * mean + rows[..., _M2] / _some(rows[..., _COUNT]))


def _l2(rows: Reals) -> Reals:
    import numpy as np

    return _rms(rows) * np.sqrt(rows[..., _COUNT])


def _zero_fraction(rows: Reals) -> Reals:
    return rows[..., _AT["zeros"]] / _some(rows[..., _AT["sampled"]])


def _some(counts: Reals) -> Reals:
    """Counts, with NaN for none."""
    import numpy as np

    return np.where(counts == 0, np.nan, counts)


_OF_MANY: dict[str, Callable[[Reals], Reals]] = {
    "std": _std,
    "rms": _rms,
    "l2": _l2,
    "zero_fraction": _zero_fraction,
}
"""The statistics of `quantities` that are no field, of many rows at once."""
