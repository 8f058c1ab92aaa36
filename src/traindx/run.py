"""`Run`: a training run as the items written of it, growing while it trains or loaded from a file.

Rules, reports and users read this one type; none of them sees a tensor or a database.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from traindx.columns import Columns
from traindx.errors import UsageError
from traindx.facts import Json, LossFacts, ModelFacts, OptimizerFacts
from traindx.findings import Verdict
from traindx.messages import say
from traindx.plots import Plots
from traindx.quantities import QUANTITIES, Quantity
from traindx.records import (
    Description,
    Event,
    EventKind,
    Item,
    Point,
    Record,
    Scalar,
    Site,
    TensorStats,
    Vector,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Series:
    """One quantity at one site over the steps it was measured at."""

    __slots__ = ("_steps", "_stretch", "_values", "additions", "quantity", "site")

    def __init__(self, quantity: str, site: Site) -> None:
        self.quantity = quantity
        self.site = site
        self._steps = array("q")
        self._values = array("d")
        self.additions = 0  # to the statistics that it follows from, as far as they are in it
        self._stretch = 0  # where the equal values at the end begin, kept so that asking is free

    def append(self, step: int, value: float) -> None:
        """Add one measurement; steps never go back."""
        if self._values and value != self._values[-1]:
            self._stretch = len(self._values)
        self._steps.append(step)
        self._values.append(value)

    def replace_last(self, value: float) -> None:
        """Put `value` in the place of the last one."""
        if value == self._values[-1]:
            return
        self._values[-1] = value
        self._stretch = len(self._values) - 1
        while self._stretch and self._values[self._stretch - 1] == value:
            self._stretch -= 1

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return iter(zip(self._steps, self._values, strict=True))

    @property
    def steps(self) -> NDArray[np.int64]:
        """The steps, as an array."""
        import numpy as np

        return np.array(self._steps, dtype=np.int64)

    @property
    def values(self) -> NDArray[np.float64]:
        """The values, as an array."""
        import numpy as np

        return np.array(self._values, dtype=np.float64)

    @property
    def first(self) -> float:
        """The first value."""
        return self._values[0]

    @property
    def last(self) -> float:
        """The last value."""
        return self._values[-1]

    @property
    def first_step(self) -> int:
        """The first step measured."""
        return self._steps[0]

    @property
    def step(self) -> int:
        """The last step measured."""
        return self._steps[-1]

    def tail(self, size: int) -> Sequence[float]:
        """The last `size` values, fewer if there are fewer."""
        return self._values[-size:] if size else ()

    def before_last(self, size: int) -> Sequence[float]:
        """The `size` values before the last one, fewer if there are fewer."""
        end = max(len(self._values) - 1, 0)
        return self._values[max(0, end - size) : end]

    def before(self, step: int, size: int) -> Sequence[float]:
        """The last `size` values measured before `step`, fewer if there are fewer."""
        end = bisect_left(self._steps, step)
        return self._values[max(0, end - size) : end]

    def step_before(self, step: int) -> int | None:
        """The last step measured before `step`, None if there is none."""
        i = bisect_left(self._steps, step)
        return self._steps[i - 1] if i else None

    @property
    def unchanged_since(self) -> int:
        """The first of the steps up to the last one that all have the last one's value."""
        return self._steps[self._stretch]

    @property
    def last_finite(self) -> int:
        """The last step with a finite value, one before the first if there is none."""
        import numpy as np

        finite = np.isfinite(np.frombuffer(self._values))
        back = int(finite[::-1].argmax())
        return self._steps[-1 - back] if finite.any() else self._steps[0] - 1

    def at(self, step: int) -> float | None:
        """The value at exactly this step, None if it was not measured there."""
        if self._steps and self._steps[-1] == step:  # what is asked most, while a run goes on
            return self._values[-1]
        i = bisect_left(self._steps, step)
        return self._values[i] if i < len(self) and self._steps[i] == step else None


class Run(Plots):
    """What was measured in one training run, and what the rules said of it.

    Attributes:
        models: The models by name, as last described.
        optimizers: The optimizers by name, as last described.
        losses: What went into the losses, by the models they reach, as last described.
        verdict: What the rules said; None if they have not been run.
        path: The file it was loaded from, None while it is being recorded.
        step: The last step that is complete, -1 before the first.
    """

    def __init__(self, items: Iterable[Item] = (), *, path: Path | None = None) -> None:
        self.path = path
        self.models: dict[str, ModelFacts] = {}
        self.optimizers: dict[str, OptimizerFacts] = {}
        self.losses: dict[str, LossFacts] = {}
        self.verdict: Verdict | None = None
        self.step = -1
        self._header: dict[str, Json] = {}
        self._events: dict[EventKind, list[Event]] = {}
        self._series: dict[str, dict[Site, Series]] = {}
        self._derived: dict[str, dict[Site, Series]] = {}
        self._vectors: dict[str, dict[Site, list[Vector]]] = {}
        self._stats: dict[Point, dict[Site, Columns]] = {}
        self._additions: dict[Point, int] = {}  # to the statistics of a point,
        self._derived_at: dict[str, int] = {}  # and after how many of them a quantity was derived
        for item in items:
            self.add(item)

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read a run file.

        Raises:
            BadRunFileError: It is missing, damaged, foreign, or of an unknown schema.
        """
        from traindx.store import reader

        items, verdict = reader.read(Path(path))
        run = cls(items, path=Path(path))
        run.verdict = verdict
        return run

    # -- writing ---------------------------------------------------------------------------------

    def add(self, item: Item) -> None:
        """Take one item; items come in order of step."""
        match item:
            case Record():
                self._add_record(item)
            case Scalar():
                self._add_scalar(item)
            case Vector():
                self._vectors.setdefault(item.quantity, {}).setdefault(item.site, []).append(item)
            case Event():
                self._add_event(item)
            case Description():
                self._describe(item)

    def _add_record(self, record: Record) -> None:
        """Several records of one place in one step (micro-batches) merge into one."""
        sites = self._stats.setdefault(record.point, {})
        columns = sites.get(record.site)
        if columns is None:
            columns = sites[record.site] = Columns()
        columns.add(record.step, record.stats)
        self._additions[record.point] = self._additions.get(record.point, 0) + 1

    def _add_scalar(self, scalar: Scalar) -> None:
        sites = self._series.setdefault(scalar.quantity, {})
        series = sites.get(scalar.site)
        if series is None:
            series = sites[scalar.site] = Series(scalar.quantity, scalar.site)
        series.append(scalar.step, scalar.value)
        if scalar.quantity == "loss":  # written for every step, once the step is complete
            self.step = max(self.step, scalar.step)

    def _add_event(self, event: Event) -> None:
        self._events.setdefault(event.kind, []).append(event)
        if event.kind in (EventKind.STARTED, EventKind.ENDED):
            self._header.update(event.detail)
        elif event.kind is EventKind.MEASURED:
            self.step = max(self.step, event.step)

    def _describe(self, description: Description) -> None:
        match description.facts:
            case ModelFacts() as facts:
                self.models[facts.name] = facts
            case OptimizerFacts() as facts:
                self.optimizers[facts.name] = facts
            case LossFacts() as facts:
                self.losses[facts.models] = facts

    # -- reading ---------------------------------------------------------------------------------

    @property
    def header(self) -> dict[str, Json]:
        """What is known of the run as a whole.

        From its start id, command and versions; from its end exit_code, steps, measured_steps,
        overhead_fraction and seconds.
        """
        return self._header

    @property
    def ended(self) -> bool:
        """Whether its end was written; False for a run that is going on or was killed."""
        return EventKind.ENDED in self._events

    @property
    def steps(self) -> int:
        """Optimizer steps completed, as far as was written."""
        steps = self._header.get("steps")
        return steps if isinstance(steps, int) else self.step + 1

    @property
    def measured_steps(self) -> int:
        """Steps at which tensors were measured."""
        return len(self.events(EventKind.MEASURED))

    def events(self, kind: EventKind) -> Sequence[Event]:
        """The events of one kind, in order."""
        return self._events.get(kind, ())

    def series(
        self, quantity: str, *, model: str | None = None, fqn: str | None = None
    ) -> list[Series]:
        """Every series of a quantity, in the order its sites were first measured.

        Args:
            quantity: A name from `traindx.quantities.QUANTITIES`.
            model: Only this model's sites.
            fqn: Only the site with this dotted path.

        Raises:
            UsageError: There is no such quantity.
        """
        found = self._sites(quantity).values()
        return [
            series
            for series in found
            if (model is None or series.site.model == model)
            and (fqn is None or series.site.fqn == fqn)
        ]

    def at(self, quantity: str, site: Site) -> Series | None:
        """The series of a quantity at one site, None if it was not measured there."""
        known = _known(quantity)
        if known.derive is None:
            return self._series.get(quantity, {}).get(site)
        return self._derive(known, site)

    def _sites(self, quantity: str) -> dict[Site, Series]:
        known = _known(quantity)
        if known.point is None:
            return self._series.get(quantity, {})
        if not self._is_derived(known):
            for site in self._stats.get(known.point, {}):
                self._derive(known, site)
            self._derived_at[quantity] = self._additions.get(known.point, 0)
        return self._derived.get(quantity, {})

    def _is_derived(self, known: Quantity) -> bool:
        """Whether every series of a quantity is up to date."""
        additions = self._additions.get(known.point, 0) if known.point else 0
        return self._derived_at.get(known.name) == additions

    def _derive(self, known: Quantity, site: Site) -> Series | None:
        """The series of a quantity that follows from tensor statistics, brought up to date."""
        if self._is_derived(known):
            return self._derived.get(known.name, {}).get(site)
        assert known.point is not None
        assert known.derive is not None
        measured = self._stats.get(known.point, {}).get(site)
        if measured is None:
            return None
        sites = self._derived.setdefault(known.name, {})
        series = sites.get(site)
        if series is None:
            series = sites[site] = Series(known.name, site)
        behind = measured.additions - series.additions
        if not behind:
            return series
        if len(series) and behind > len(measured) - len(series):
            # The newest has merged with another micro-batch since it was derived.
            series.replace_last(known.derive(measured[len(series) - 1]))
        for i in range(len(series), len(measured)):
            series.append(measured.steps[i], known.derive(measured[i]))
        series.additions = measured.additions
        return series

    def sites_of(self, point: Point) -> list[Site]:
        """Where tensors of one point were measured, in the order they first were."""
        return list(self._stats.get(point, {}))

    def stats(self, point: Point, site: Site) -> dict[int, TensorStats]:
        """The statistics of one place by step."""
        columns = self._stats.get(point, {}).get(site)
        return columns.by_step() if columns else {}

    def stats_at(self, point: Point, site: Site, step: int) -> TensorStats | None:
        """The statistics of one place at one step, None if it was not measured there."""
        columns = self._stats.get(point, {}).get(site)
        return columns.at(step) if columns else None

    def columns(self, point: Point, site: Site) -> Columns | None:
        """The same as plain numbers, for many steps at once; None if nothing was measured there."""
        return self._stats.get(point, {}).get(site)

    def vectors(self, quantity: str) -> Mapping[Site, Sequence[Vector]]:
        """What was measured of a quantity that has several numbers, by site, in order of step."""
        _known(quantity)
        return self._vectors.get(quantity, {})

    def loss_of(self, model: str) -> Series | None:
        """The first loss that reaches `model`, None if none was seen."""
        reaching = (s for s in self.series("loss") if model in s.site.models)
        return next((series for series in reaching if len(series)), None)

    def loss_fraction(self, model: str) -> float:
        """Mean of the last 10 losses that reach `model` over the first; NaN if none is known."""
        for series in self.series("loss"):
            if model in series.site.models and len(series) and series.first:
                recent = series.tail(10)
                return sum(recent) / len(recent) / series.first
        return math.nan


def _known(quantity: str) -> Quantity:
    known = QUANTITIES.get(quantity)
    if known is None:
        from difflib import get_close_matches

        near = get_close_matches(quantity, QUANTITIES, n=1)
        if not near:
            raise UsageError(say("There is no quantity `{name}`.", name=quantity))
        raise UsageError(
            say(
                "There is no quantity `{name}`. Did you mean `{nearest}`?",
                name=quantity,
                nearest=near[0],
            )
        )
    return known
