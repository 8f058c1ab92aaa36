"""`Run`: a training run as the items written of it, growing while it trains or loaded from a file.

Rules, reports and users read this one type; none of them sees a tensor or a database. Its memory
does not grow with the steps: what is long is thinned (`traindx.thinning`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx.columns import Columns
from traindx.errors import UsageError
from traindx.events import Events
from traindx.facts import Json, LossFacts, ModelFacts, OptimizerFacts
from traindx.findings import Verdict
from traindx.ledger import Newest
from traindx.measured import Measured
from traindx.messages import say
from traindx.plots import Plots
from traindx.quantities import QUANTITIES, Quantity
from traindx.records import (
    Bundle,
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
from traindx.series import Series
from traindx.thinning import Pins

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from traindx.store.stretch import Stretch

_BEFORE_TROUBLE = 16
_BEFORE_EVALUATION = 64
"""Measured steps that rules look back to from a moment in the past."""


class Run(Plots):
    """What was measured in one training run, and what the rules said of it.

    Attributes:
        models: The models by name, as last described.
        optimizers: The optimizers by name, as last described.
        losses: What went into the losses, by the models they reach, as last described.
        verdict: What the rules said; None if they have not been run.
        path: The file it was loaded from, None while it is being recorded.
        step: The last step that is complete, -1 before the first.
        remembered: What rules have found out of it: by what it is, the state that it follows from
            and the result.
        breaks: How often a loss, a parameter or a tensor that was finite has ceased to be.
    """

    def __init__(self, items: Iterable[Item] = (), *, path: Path | None = None) -> None:
        self.path = path
        self.models: dict[str, ModelFacts] = {}
        self.optimizers: dict[str, OptimizerFacts] = {}
        self.losses: dict[str, LossFacts] = {}
        self.verdict: Verdict | None = None
        self.step = -1
        self.breaks = 0
        self.remembered: dict[object, tuple[object, Any]] = {}
        self._header: dict[str, Json] = {}
        self._pins = Pins()
        self._events = Events(self._pins)
        self._vectors: dict[str, dict[Site, list[Vector]]] = {}
        self._measured = Measured(self._pins, self._breaks)
        self._num_losses = 0
        self._reaching: dict[str, list[Site]] = {}
        for item in items:
            self.add(item)

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read a run file.

        Raises:
            BadRunFileError: It is missing, damaged, foreign, or of an unknown schema.
        """
        from traindx.store import reader

        run = cls(path=Path(path))
        for stretch in (stored := reader.Stored(Path(path))):
            for _ in run.replay(stretch):
                pass
        run.verdict = stored.verdict
        return run

    # -- writing ---------------------------------------------------------------------------------

    def add(self, item: Item) -> None:
        """Take one item; items come in order of step."""
        match item:
            case Record():
                self._measured.add_record(item)
            case Scalar():
                self._measured.add_number(item.quantity, item.site, item.step, item.value)
                self.step = max(self.step, self._measured.loss_step)
            case Bundle():
                self._measured.add_bundle(item)
                self.step = max(self.step, self._measured.loss_step)
            case Vector():
                self._vectors.setdefault(item.quantity, {}).setdefault(item.site, []).append(item)
            case Event():
                self._add_event(item)
            case Description():
                self._describe(item)

    def _breaks(self, step: int) -> None:
        """Something that was finite is so no more: what led there is kept in all series."""
        self.breaks += 1
        measured = self._events.last_steps(EventKind.MEASURED, _BEFORE_TROUBLE)
        moment = (*measured, step - 1, step)
        self._measured.file_all()
        if "first trouble" not in self._pins:
            self._pins.pin("first trouble", moment)
        self._pins.pin("last trouble", moment)

    def _add_event(self, event: Event) -> None:
        self._events.add(event)
        if event.kind in (EventKind.STARTED, EventKind.ENDED):
            self._header.update(event.detail)
        elif event.kind is EventKind.MEASURED:
            self.step = max(self.step, event.step)
        elif event.kind is EventKind.EVALUATION and not event.detail.get("training"):
            measured = self._events.last_steps(EventKind.MEASURED, _BEFORE_EVALUATION)
            self._measured.file_all()
            self._pins.pin(f"evaluation of {event.site.model}", measured)

    def _describe(self, description: Description) -> None:
        match description.facts:
            case ModelFacts() as facts:
                self.models[facts.name] = facts
            case OptimizerFacts() as facts:
                self.optimizers[facts.name] = facts
            case LossFacts() as facts:
                self.losses[facts.models] = facts

    def replay(self, stretch: Stretch) -> Iterator[Event]:
        """Take what was read of a file; say of each measured step when it is complete.

        The run then holds what it held when that step was over, while it was recorded.
        """
        from traindx.store.stretch import Portions

        portions = Portions(stretch, self._measured)
        for item in stretch.others:
            if isinstance(item, Event) and item.kind is EventKind.MEASURED:
                portions.up_to_next_mark()
                self.add(item)
                yield item
            else:
                self.add(item)
        portions.to_the_end()
        self.step = max(self.step, self._measured.loss_step)

    # -- reading ---------------------------------------------------------------------------------

    @property
    def header(self) -> dict[str, Json]:
        """What is known of the run as a whole.

        From its start id, command and versions; from its end exit_code, steps, measured_steps,
        overhead_fraction and seconds.
        """
        return self._header

    @property
    def is_preflight(self) -> bool:
        """Whether it is of probes before training, and of no step."""
        return self._header.get("kind") == "preflight"

    @property
    def ended(self) -> bool:
        """Whether its end was written; False for a run that is going on or was killed."""
        return self._events.count(EventKind.ENDED) > 0

    @property
    def steps(self) -> int:
        """Optimizer steps completed, as far as was written."""
        steps = self._header.get("steps")
        return steps if isinstance(steps, int) else self.step + 1

    @property
    def measured_steps(self) -> int:
        """Steps at which tensors were measured."""
        return self._events.count(EventKind.MEASURED)

    def events(self, kind: EventKind) -> Sequence[Event]:
        """The events of one kind, in order; of very many, the first, the last and some between."""
        return self._events.of(kind)

    def num_events(self, kind: EventKind) -> int:
        """How many events of one kind there were."""
        return self._events.count(kind)

    def amp_skipped(self, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """At which of some steps a GradScaler skipped the optimizer's."""
        return self._events.skipped.has(steps)

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
        found = self._measured.series(_known(quantity)).values()
        return [
            series
            for series in found
            if (model is None or series.site.model == model)
            and (fqn is None or series.site.fqn == fqn)
        ]

    def at(self, quantity: str, site: Site) -> Series | None:
        """The series of a quantity at one site, None if it was not measured there."""
        return self._measured.at(_known(quantity), site)

    def newest(
        self, quantity: str, sites: tuple[Site, ...] | None = None, *, model: str | None = None
    ) -> Newest:
        """What was measured last of a quantity, at these sites, at a model's, or at all.

        It costs next to nothing, however many sites there are; what it returns is not to be kept
        or changed. Ask again with the same tuple of sites: then they need not be looked up.
        """
        return self._measured.newest(_known(quantity), sites, model)

    def recent(
        self, quantity: str, sites: tuple[Site, ...], window: int
    ) -> NDArray[np.float64] | None:
        """The last `window` values of some sites, if they were measured together: [window, n].

        None if they were not, or fewer times; then their series tell.
        """
        return self._measured.recent(_known(quantity), sites, window)

    def additions(self, quantity: str) -> int:
        """How often anything of a quantity was added: where it is the same, so is everything."""
        return self._measured.additions(_known(quantity))

    @property
    def num_quantities(self) -> int:
        """How many kinds of numbers were measured: where it is the same, none has come up since."""
        return self._measured.num_quantities

    def sites_of(self, point: Point) -> list[Site]:
        """Where tensors of one point were measured, in the order they first were."""
        return list(self._measured.columns(point))

    def stats(self, point: Point, site: Site) -> dict[int, TensorStats]:
        """The statistics of one place by step."""
        columns = self._measured.columns(point).get(site)
        return columns.by_step() if columns else {}

    def stats_at(self, point: Point, site: Site, step: int) -> TensorStats | None:
        """The statistics of one place at one step, None if it was not measured there."""
        columns = self._measured.columns(point).get(site)
        return columns.at(step) if columns else None

    def columns(self, point: Point, site: Site) -> Columns | None:
        """The same as plain numbers, for many steps at once; None if nothing was measured there."""
        return self._measured.columns(point).get(site)

    def vectors(self, quantity: str) -> Mapping[Site, Sequence[Vector]]:
        """What was measured of a quantity that has several numbers, by site, in order of step."""
        _known(quantity)
        return self._vectors.get(quantity, {})

    def loss_of(self, model: str) -> Series | None:
        """The first loss that reaches `model`, None if none was seen."""
        return next((series for series in self._losses_of(model) if len(series)), None)

    def _losses_of(self, model: str) -> Iterable[Series]:
        """Those that reach `model`, of which each of hundreds of models is asked for its own."""
        every = self._measured.series(QUANTITIES["loss"])
        if len(every) != self._num_losses:  # none is ever taken away
            reaching: dict[str, list[Site]] = {}
            for site in every:
                for name in site.models:
                    reaching.setdefault(name, []).append(site)
            self._num_losses, self._reaching = len(every), reaching
        return [every[site] for site in self._reaching.get(model, ())]

    def loss_fraction(self, model: str) -> float:
        """Mean of the last 10 losses that reach `model` over the first; NaN if none is known."""
        for series in self._losses_of(model):
            if len(series) and series.first:
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
