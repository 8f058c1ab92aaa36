"""Series that follow from the statistics of a place, brought up to date when they are asked for."""

from __future__ import annotations

from traindx.columns import Columns
from traindx.quantities import Quantity
from traindx.records import Site
from traindx.series import Series


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
    derived = dict(list(before)[:-1])
    steps = [step for step in measured.steps if step in derived]
    # What is left of it stands at the beginning, without gaps.
    if steps != measured.steps[: len(steps)].tolist():
        return series
    series.extend(np.array(steps, np.int64), np.array([derived[step] for step in steps]))
    series.additions = measured.additions - (len(measured) - len(steps))
    return series
