"""`ReduceLROnPlateau` that is told a number of the other kind than its mode says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from traindx.findings import Evidence
from traindx.messages import say
from traindx.run import Run, Series

_CALLS = 4
"""Different numbers that it takes."""
_MOST = 10_000
"""Largest number of answers of which a metric may be a share."""
_ENDS = 5
"""Losses at each end that are compared."""


def told_backwards(run: Run, *, fallen: float) -> Iterator[Evidence]:
    """One for each optimizer whose rate was cut while what was told went the good way.

    Args:
        run: The run.
        fallen: Share of the first losses below which training makes progress.
    """
    for metric in run.series("plateau.metric"):
        mode = run.at("plateau.more_is_better", metric.site)
        rate = run.at("lr", metric.site)
        if mode is None or rate is None or not rate.last < rate.first:
            continue
        if _is_backwards(metric, more_is_better=mode.last == 1) and _progress(run, fallen):
            yield _evidence(metric, rate, more_is_better=mode.last == 1)


def _is_backwards(metric: Series, *, more_is_better: bool) -> bool:
    """Whether by its mode every number was worse than the first, and its kind is the other one.

    Shares of right answers are multiples of one over their number, which no loss is.
    """
    values = metric.values.tolist()
    first, later = values[0], values[1:]
    if len(set(values)) < _CALLS:
        return False
    if more_is_better:
        return max(later) < first and not _is_counted(values)
    return min(later) > first and _is_counted(values)


def _is_counted(values: Sequence[float]) -> bool:
    """Whether these are shares, or percentages, of one number of answers."""
    for unit in (1.0, 100.0):
        shares = [value / unit for value in values]
        if all(0 <= share <= 1 for share in shares):
            for count in range(1, _MOST + 1):
                off = max(abs(share * count - round(share * count)) for share in shares)
                if off <= 2e-7 * count + 1e-9:
                    return True
    return False


def _progress(run: Run, fallen: float) -> bool:
    losses = run.series("loss")
    if not losses or len(losses[0]) < 2 * _ENDS:
        return False
    first, last = fmean(losses[0].head(_ENDS)), fmean(losses[0].tail(_ENDS))
    return first > 0 and last < fallen * first


def _evidence(metric: Series, rate: Series, *, more_is_better: bool) -> Evidence:
    best = say("largest") if more_is_better else say("smallest")
    mode = ("max", "min") if more_is_better else ("min", "max")
    return Evidence(
        site=metric.site,
        step=max(metric.step, rate.step),
        message=say(
            "ReduceLROnPlateau takes the {best} number for the best and has been told {count} "
            "numbers that went from {first:.3g} to {last:.3g} as the loss fell; it has cut the "
            "learning rate of {optimizer} from {before:.2g} to {after:.2g}",
            best=best,
            count=metric.count,
            first=metric.first,
            last=metric.last,
            optimizer=metric.site.fqn,
            before=rate.first,
            after=rate.last,
        ),
        numbers={"first": metric.first, "last": metric.last, "lr": rate.last},
        cause=say("Its `mode` is `{mode}`, and it is told progress as decline.", mode=mode[0]),
        fix=say('ReduceLROnPlateau(optimizer, mode="{mode}")', mode=mode[1]),
        excluded=(say("a validation loss that rises"), say("an accuracy that falls")),
        series=("plateau.metric", "lr", "loss"),
    )
