"""What changed from one run to another: findings, losses, measurements, settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from traindx.facts import Json, ModelFacts
from traindx.findings import Finding
from traindx.records import Site
from traindx.report.story import judged
from traindx.run import Run, Series

QUANTITIES = (
    "output.rms",
    "grad.rms",
    "param.rms",
    "update.ratio",
    "norm.running_gap",
    "units.dead_fraction",
    "output.batch_share",
)
"""What is compared by layer."""
LEAST_STEPS = 5
"""Measured steps that a median needs."""
LEAST_CHANGE = 1.25
"""Factor under which two medians are told to be equal, however steady they are."""
ENDING = 10
"""Losses at the end that are averaged."""


@dataclass(frozen=True, slots=True)
class LossChange:
    """One loss in both runs.

    Attributes:
        site: The models it reaches.
        steps: Some steps that both have, the first and the last among them.
        before: The first run's loss at these steps.
        after: The second run's.
        end_before: Mean of the last losses of the first run.
        end_after: Of the second.
    """

    site: Site
    steps: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    end_before: float
    end_after: float


@dataclass(frozen=True, slots=True)
class MedianChange:
    """The medians of a quantity at one place, where they differ by more than noise."""

    quantity: str
    site: Site
    before: float
    after: float

    @property
    def size(self) -> float:
        """How far apart, in factors on a logarithmic scale; infinite from or to 0."""
        if self.before <= 0 or self.after <= 0:
            return math.inf
        return abs(math.log(self.after) - math.log(self.before))  # their ratio may be 0


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that differs; None where a run does not have it."""

    name: str
    before: Json
    after: Json
    sites: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that changed from one run to another.

    Attributes:
        gone: Active findings that only the first run has.
        new: Those that only the second has.
        same: Those at the same place by the same rule, of both runs.
        losses: The losses that both have.
        medians: What was measured otherwise, the greatest change first.
        settings: What was set otherwise.
    """

    gone: tuple[Finding, ...]
    new: tuple[Finding, ...]
    same: tuple[tuple[Finding, Finding], ...]
    losses: tuple[LossChange, ...]
    medians: tuple[MedianChange, ...]
    settings: tuple[SettingChange, ...]


def compare(before: Run, after: Run) -> Comparison:
    """What changed from `before` to `after`; findings are the same by their fingerprint."""
    old, new = _active(before), _active(after)
    medians = [change for name in QUANTITIES for change in _medians(before, after, name)]
    return Comparison(
        gone=tuple(old[key] for key in old if key not in new),
        new=tuple(new[key] for key in new if key not in old),
        same=tuple((old[key], new[key]) for key in old if key in new),
        losses=tuple(_losses(before, after)),
        medians=tuple(sorted(medians, key=lambda change: -change.size)),
        settings=tuple(_settings(before, after)),
    )


def _active(run: Run) -> dict[str, Finding]:
    return {f.fingerprint: f for f in judged(run).findings if f.active}


# -- losses --------------------------------------------------------------------------------------


def _losses(before: Run, after: Run) -> Iterator[LossChange]:
    olds = {series.site: series for series in before.series("loss")}
    news = {series.site: series for series in after.series("loss")}
    if len(olds) == len(news) == 1:  # a model may have got another name
        yield from _loss(next(iter(olds.values())), next(iter(news.values())))
        return
    for site, old in olds.items():
        if site in news:
            yield from _loss(old, news[site])


def _loss(old: Series, new: Series) -> Iterator[LossChange]:
    known = {step for step, _ in new}
    common = [step for step, _ in old if step in known]
    if not common:
        return
    at = sorted({common[(len(common) - 1) * i // 4] for i in range(5)})
    yield LossChange(
        site=new.site,
        steps=tuple(at),
        before=tuple(_at(old, at)),
        after=tuple(_at(new, at)),
        end_before=_mean(old.tail(ENDING)),
        end_after=_mean(new.tail(ENDING)),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)  # `fmean` raises on the two infinities, and on overflow


def _at(series: Series, steps: Iterable[int]) -> Iterator[float]:
    for step in steps:
        value = series.at(step)
        assert value is not None
        yield value


# -- measurements --------------------------------------------------------------------------------


def _medians(before: Run, after: Run, quantity: str) -> Iterator[MedianChange]:
    news = {series.site: series for series in after.series(quantity)}
    for old in before.series(quantity):
        new = news.get(old.site)
        if new is None:
            continue
        end = min(old.step, new.step) + 1
        one, other = _late(old, end), _late(new, end)
        if min(len(one), len(other)) >= LEAST_STEPS and _differ(one, other):
            yield MedianChange(quantity, old.site, median(one), median(other))


def _late(series: Series, end: int) -> list[float]:
    """The later half of its values before step `end`: at first every two runs differ."""
    values = series.before(end, len(series))
    values = values[-max(len(values) // 2, LEAST_STEPS) :]
    return [value for value in values if math.isfinite(value)]


def _differ(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether the middle 80 % of the values lie apart, and the medians by a fourth or more."""
    (low, *_, high), (least, *_, most) = quantiles(one, n=10), quantiles(other, n=10)
    small, great = sorted((abs(median(one)), abs(median(other))))
    return (high < least or most < low) and great >= LEAST_CHANGE * small


# -- settings ------------------------------------------------------------------------------------


def _settings(before: Run, after: Run) -> Iterator[SettingChange]:
    yield from _differing(_header(before), _header(after))
    yield from _differing(_optimizers(before), _optimizers(after))
    for name in dict.fromkeys((*before.models, *after.models)):
        old, new = before.models.get(name), after.models.get(name)
        if old and new:
            yield from _of_model(old, new)
        else:
            yield SettingChange("model", name if old else None, name if new else None)


def _differing(old: Mapping[str, Json], new: Mapping[str, Json]) -> Iterator[SettingChange]:
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield SettingChange(name, old.get(name), new.get(name))


def _header(run: Run) -> dict[str, Json]:
    versions = run.header.get("versions")
    found: dict[str, Json] = {"command": run.header.get("command"), "steps": run.steps}
    found |= {name: run.header.get(name) for name in ("platform", "every", "budget")}
    return found | (versions if isinstance(versions, dict) else {})


def _optimizers(run: Run) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, optimizer in run.optimizers.items():
        found[name] = optimizer.kind
        for i, group in enumerate(optimizer.groups):
            where = name if len(optimizer.groups) == 1 else f"{name}[{i}]"
            found |= {f"{where}.{key}": value for key, value in group.items()}
    return found


def _of_model(old: ModelFacts, new: ModelFacts) -> Iterator[SettingChange]:
    """What differs in a model, the layers with one and the same change together."""
    changes: dict[tuple[str, str, str], tuple[SettingChange, list[Site]]] = {}
    olds, news = _parts(old), _parts(new)
    for fqn in dict.fromkeys((*olds, *news)):
        for change in _differing(olds.get(fqn, {}), news.get(fqn, {})):
            key = change.name, repr(change.before), repr(change.after)
            changes.setdefault(key, (change, []))[1].append(Site(new.name, fqn))
    for change, sites in changes.values():
        yield SettingChange(change.name, change.before, change.after, tuple(sites))


def _parts(model: ModelFacts) -> dict[str, dict[str, Json]]:
    found: dict[str, dict[str, Json]] = {
        module.fqn: {"class": module.kind, **module.options} for module in model.modules
    }
    for param in model.params:
        found[param.fqn] = {
            "shape": list(param.shape),
            "dtype": param.dtype,
            "trainable": param.trainable,
        }
    return found
