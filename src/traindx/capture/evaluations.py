"""Forward passes that train nothing: counted, and how the model was set; never measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from torch import Tensor

from traindx.capture.models import TrackedModel
from traindx.capture.modes import Marks, Mode, Modes, differ, random_states
from traindx.facts import Json
from traindx.records import Event, EventKind, Site

_Key = tuple[TrackedModel, bool, Mode]


@dataclass(slots=True)
class _Passes:
    """Passes of a model that was set in one way.

    Attributes:
        forwards: How many.
        drawing: Of how many torch's random states were others afterwards.
        written: Running statistics that were written in them, by fqn.
        initial: Modules whose running statistics were untouched before one of them.
    """

    forwards: int = 0
    drawing: int = 0
    written: dict[str, None] = field(default_factory=dict[str, None])
    initial: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pass:
    """A pass going on: what it is counted as, and how things stood before it."""

    key: _Key
    states: list[Tensor]
    statistics: dict[str, Marks]


class Evaluations:
    """Evaluation passes since they were last reported."""

    def __init__(self) -> None:
        self._modes = Modes()
        self._passes: dict[_Key, _Passes] = {}
        self._eval_mode: dict[TrackedModel, int] = {}
        self._last: dict[TrackedModel, _Key] = {}
        self._going_on: _Pass | None = None

    @property
    def pending(self) -> bool:
        """Whether there is something to report."""
        return bool(self._passes)

    @property
    def undecided(self) -> bool:
        """Whether calls in eval mode await the backward that tells what they were."""
        return bool(self._eval_mode)

    def without_gradient(self, model: TrackedModel) -> None:
        """A model is called with gradients disabled."""
        key = (model, model.training, self._modes.of(model))
        first = key not in self._passes
        self._count(key, 1)
        self._last[model] = key
        if not model.training and (first or self._modes.begins_initial(model)):
            self._passes[key].initial = tuple(self._modes.initial(model))
        self._going_on = _Pass(key, random_states(), self._modes.statistics(model))

    def forward_ended(self) -> None:
        """The outermost module has returned: see what the pass has left behind."""
        going_on, self._going_on = self._going_on, None
        passes = self._passes.get(going_on.key) if going_on else None
        if going_on is None or passes is None:
            return
        passes.drawing += differ(going_on.states, random_states())
        before, now = going_on.statistics, self._modes.statistics(going_on.key[0])
        passes.written.update({fqn: None for fqn in now if before.get(fqn) != now[fqn]})

    def forward_failed(self) -> None:
        """The outermost module has raised."""
        self._going_on = None

    def with_gradient(self, model: TrackedModel) -> bool:
        """A model was called with gradients enabled.

        True if earlier such calls, in eval mode, turn out not to belong to this training step.
        """
        if model.training:
            return bool(self._eval_mode.get(model))
        self._eval_mode[model] = self._eval_mode.get(model, 0) + 1
        return False

    def backward_starts(self) -> None:
        """Calls in eval mode that no backward followed were evaluations after all."""
        if not self._eval_mode:
            return
        for model, count in self._eval_mode.items():
            self._count((model, False, Mode()), count - (not model.training))
        self._eval_mode = {}

    def ends(self) -> None:
        """No backward will follow: all that is left were evaluations."""
        for model, count in self._eval_mode.items():
            self._count((model, False, Mode()), count)
        self._eval_mode = {}

    def _count(self, key: _Key, forwards: int) -> None:
        if forwards > 0:
            self._passes.setdefault(key, _Passes()).forwards += forwards

    def events(self, step: int) -> list[Event]:
        """An event for each model and mode; those of models that may yet train are kept."""
        if not self._passes:
            return []
        known = {key: passes for key, passes in self._passes.items() if key[0].confirmed}
        self._passes = {
            key: passes
            for key, passes in self._passes.items()
            if key not in known and key[0].root is not None
        }
        ways = Counter(model for model, _, _ in known)
        last = {key for model, key in self._last.items() if ways[model] > 1}
        self._last = {
            model: key
            for model, key in self._last.items()
            if not ways[model] and model.root is not None
        }
        return [
            Event(step, EventKind.EVALUATION, Site(key[0].name), _detail(key, passes, key in last))
            for key, passes in known.items()
        ]


def _detail(key: _Key, passes: _Passes, last: bool) -> dict[str, Json]:
    """What an event tells; what is 0 or empty is left out."""
    _, training, mode = key
    more: dict[str, Json] = {
        "dropping": mode.dropping,
        "batch_norms": mode.batch_norms,
        "first": mode.first,
        "drawing": passes.drawing,
        "written": [*passes.written],
        "initial": [*passes.initial],
        "last": last,
    }
    told = {name: value for name, value in more.items() if value}
    return {"forwards": passes.forwards, "training": training, **told}
