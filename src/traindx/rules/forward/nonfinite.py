"""When a run's numbers stopped being finite, and where, as far as its measured steps can tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from traindx.facts import ModelFacts
from traindx.records import RUN, Event, EventKind, Point, Site, TensorStats
from traindx.run import Run, Series

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Steps = NDArray[np.int64]

What = Literal["loss", "gradient", "parameter", "replay"]
Kind = Literal["input", "module", "between", "loss", "loss-backward", "backward", "grad"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """The first step at which something of the models that a loss reaches was not finite.

    Attributes:
        losses: The loss, step by step.
        models: The models that it reaches.
        step: The step.
        what: What was not finite there, the first of it to be made.
        recovered: Whether the loss and the parameters have been finite again since.
        origin: What a replay of the batch has shown of it.
    """

    losses: Series
    models: tuple[str, ...]
    step: int
    what: What
    recovered: bool
    origin: Event | None

    @property
    def site(self) -> Site:
        """The first model that the loss reaches."""
        return Site(self.models[0]) if self.models else RUN


@dataclass(frozen=True, slots=True)
class Place:
    """Where measured outputs or gradients stop being finite.

    Attributes:
        kind: `module`: in it; `between`: in `site`, after `after` and up to the output of `before`.
        site: The innermost module that is sure.
        after: The last module measured whose tensor is finite.
        before: The first one whose tensor is not.
        count: Elements that are not finite.
    """

    kind: Kind
    site: Site
    after: str = ""
    before: str = ""
    count: float = 0


def troubles(run: Run) -> Iterator[Trouble]:
    """One for each loss that was not finite, or had a gradient or a parameter that was not."""
    if not run.breaks and not run.num_events(EventKind.ORIGIN):  # as of nearly all runs
        return
    for losses in run.series("loss"):
        models = tuple(name for name in losses.site.models if name in run.models)
        origin = _origin(run, models)
        at: dict[What, int] = dict(_first_steps(run, losses, models, origin))
        if at:
            step = min(at.values())
            what: What = next(what for what, first in at.items() if first == step)
            yield Trouble(losses, models, step, what, _recovered(run, losses, models, step), origin)


def _first_steps(
    run: Run, losses: Series, models: Sequence[str], origin: Event | None
) -> Iterator[tuple[What, int]]:
    """The first step of each kind, in the order in which a step makes them."""
    broken = _first_broken(losses)
    # Old measurements are read again only if there is a reason to.
    if broken is None and origin is None and not any(_last_bad(run, name) for name in models):
        return
    params = [it for name in models for it in run.series("param.rms", model=name)]
    grads = [it for name in models for it in run.series("grad.nonfinite", model=name)]
    yield from _earliest("parameter", params, _is_nan)
    if broken is not None:
        yield "loss", broken
    yield from _earliest("gradient", grads, _is_not_0, run.amp_skipped)
    if origin is not None:
        yield "replay", origin.step


def _last_bad(run: Run, model: str) -> bool:
    # An infinite RMS may be the overflow of a sum of squares.
    params = run.newest("param.rms", model=model).values
    grads = run.newest("grad.nonfinite", model=model).values
    return bool(_is_nan(params).any() or _is_not_0(grads).any())


def _earliest(
    what: What,
    found: Sequence[Series],
    bad: Callable[[Values], Flags],
    apart: Callable[[Steps], Flags] | None = None,
) -> Iterator[tuple[What, int]]:
    first: list[int] = []
    for series in found:
        flags = bad(series.values)
        if apart and flags.any():
            flags &= ~apart(series.steps)
        if flags.any():
            first.append(int(series.steps[int(flags.argmax())]))
    if first:
        yield what, min(first)


def _is_nan(values: Values) -> Flags:
    return values != values


def _is_not_0(values: Values) -> Flags:
    return values != 0


def _first_broken(losses: Series) -> int | None:
    import numpy as np

    finite = np.isfinite(losses.values)
    return None if finite.all() else int(losses.steps[int(finite.argmin())])


def _origin(run: Run, models: Sequence[str]) -> Event | None:
    events = run.events(EventKind.ORIGIN)
    return next((it for it in events if it.site.model in models or not it.site.model), None)


def _recovered(run: Run, losses: Series, models: Sequence[str], step: int) -> bool:
    """Whether training went on without harm: the batch was left out, or the update."""
    later = losses.step > step and math.isfinite(losses.last)
    params = (it.last for name in models for it in run.series("param.rms", model=name))
    return later and all(math.isfinite(value) for value in params)


def place_of(run: Run, trouble: Trouble) -> Place | None:
    """Where it began; None unless what was measured leaves no doubt."""
    if trouble.what not in ("loss", "gradient") or len(run.series("loss")) > 1:
        return None
    measured = {event.step for event in run.events(EventKind.MEASURED)}
    if trouble.step not in measured:
        return None
    at = [_Step(run, run.models[name], trouble.step) for name in trouble.models]
    if any(it.model.compiled or not it.outputs for it in at) or not at:
        return None
    if trouble.what == "gradient":
        return at[0].gradient_place() if len(at) == 1 else None
    if given := next((it for it in at if it.input_is_broken()), None):
        return Place("input", Site(given.model.name), count=given.bad_inputs)
    broken = [it for it in at if it.bad(it.outputs)]
    if not broken:
        return Place("loss", trouble.site)
    # A gradient of the step before may have broken the parameters, if nobody looked at it.
    looked_at = trouble.step == 0 or trouble.step - 1 in measured
    began_finite = looked_at and all(it.params_finite() for it in at)
    return broken[0].output_place() if began_finite and len(broken) == 1 else None


class _Step:
    """What was measured of one model at one step, in the order of its modules' calls."""

    def __init__(self, run: Run, model: ModelFacts, step: int) -> None:
        self.model = model
        self._run = run
        self._step = step
        self._kinds = {module.fqn: module.kind for module in model.modules}
        self._calls = {module.fqn: module.calls for module in model.modules}
        self.outputs = self._measured(Point.OUTPUT)

    def _measured(self, point: Point) -> dict[str, TensorStats]:
        order = (module.fqn for module in self.model.in_network_order())
        stats = ((fqn, self._at(point, fqn)) for fqn in order)
        return {fqn: found for fqn, found in stats if found is not None}

    def _at(self, point: Point, fqn: str) -> TensorStats | None:
        return self._run.stats_at(point, Site(self.model.name, fqn), self._step)

    @property
    def bad_inputs(self) -> int:
        """Elements of the batch that are not finite."""
        given = self._at(Point.INPUT, "")
        return given.nonfinite if given is not None else 0

    def input_is_broken(self) -> bool:
        """Whether the batch is not finite, and no mask of minus infinity."""
        given = self._at(Point.INPUT, "")
        return given is not None and given.nonfinite > 0 and not _is_mask(given)

    def params_finite(self) -> bool:
        """Whether every parameter was finite before the update, as far as it was sampled."""
        found = (it.at(self._step) for it in self._run.series("param.rms", model=self.model.name))
        return all(value is None or math.isfinite(value) for value in found)

    def bad(self, measured: dict[str, TensorStats]) -> list[str]:
        """The modules whose tensor is not finite, in order."""
        return [fqn for fqn, stats in measured.items() if stats.nonfinite]

    def output_place(self) -> Place | None:
        """Where the outputs stop being finite."""
        first = self.bad(self.outputs)[0]
        # A mask may be meant; a module called twice may have been fine the first time.
        if _is_mask(self.outputs[first]) or self._calls[first] > 1:
            return None
        names = list(self.outputs)
        after = names[names.index(first) - 1] if names[0] != first else ""
        count = self.outputs[first].nonfinite
        if self._given_finite(first):
            return Place("module", self._site(first), after, first, count)
        if not after and self._at(Point.INPUT, "") is None:
            return None
        inside = _common(after, first) if after else _parent(first)
        return Place("between", self._site(inside), after, first, count)

    def _given_finite(self, fqn: str) -> bool:
        """Whether all that a module was given is known: in a chain it is the output before."""
        if not fqn:
            given = self._at(Point.INPUT, "")
            return given is not None and not given.nonfinite
        parent = _parent(fqn)
        if self._kinds.get(parent) != "Sequential":
            return False
        children = self._children(parent)
        place = children.index(fqn)
        return self._returned_finite(children[place - 1]) if place else self._given_finite(parent)

    def _returned_finite(self, fqn: str) -> bool:
        """Whether a module's output is known; a container's may be its last child's very tensor."""
        stats = self.outputs.get(fqn)
        if stats is not None:
            return not stats.nonfinite
        children = self._children(fqn)
        chain = self._kinds.get(fqn) == "Sequential"
        return chain and bool(children) and self._returned_finite(children[-1])

    def _children(self, parent: str) -> list[str]:
        names = (module.fqn for module in self.model.modules)
        return [fqn for fqn in names if fqn and _parent(fqn) == parent]

    def gradient_place(self) -> Place | None:
        """Where the gradients stop being finite, on the way back from the loss."""
        gradients = self._measured(Point.OUTPUT_GRAD)
        bad = self.bad(gradients)
        names = list(gradients)
        if not names:
            return None
        if not bad:
            return self._param_place(names)
        first = bad[-1]
        if first == names[-1]:
            return Place("loss-backward", self._site(""), "", first, gradients[first].nonfinite)
        after = names[names.index(first) + 1]
        if self._calls[first] > 1 or self._calls[after] > 1:
            return None
        chain = self._kinds.get(_parent(first)) == "Sequential"
        inside = after if chain and _follows(self._children, first, after) else None
        site = self._site(_common(after, first) if inside is None else inside)
        return Place("backward", site, after, first, gradients[first].nonfinite)

    def _param_place(self, known: Sequence[str]) -> Place | None:
        """Of gradients of parameters alone: the last module whose output's gradient is known."""
        broken = [
            (known.index(param.module), param.fqn, stats.nonfinite)
            for param in self.model.params
            if param.module in known
            and (stats := self._at(Point.GRAD, param.fqn)) is not None
            and stats.nonfinite
        ]
        if not broken:
            return None
        _, fqn, count = max(broken)
        return Place("grad", self._site(_parent(fqn)), "", fqn, count)

    def _site(self, fqn: str) -> Site:
        return Site(self.model.name, fqn)


def _follows(children: Callable[[str], list[str]], first: str, after: str) -> bool:
    siblings = children(_parent(first))
    return after in siblings and siblings.index(after) == siblings.index(first) + 1


def _is_mask(stats: TensorStats) -> bool:
    """Whether all that is not finite in it is minus infinity, as in a mask of scores."""
    return stats.min == -math.inf and math.isfinite(stats.max)


def _parent(fqn: str) -> str:
    return fqn.rpartition(".")[0]


def _common(one: str, other: str) -> str:
    """The innermost module that holds both, itself one of them if it holds the other."""
    parts: list[str] = []
    for a, b in zip(one.split("."), other.split("."), strict=False):
        if a != b:
            break
        parts.append(a)
    return ".".join(parts)
