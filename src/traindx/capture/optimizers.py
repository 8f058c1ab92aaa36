"""The optimizers in use, and whether the gradients they get were cleared before."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, cast

from torch import Tensor
from torch.optim.optimizer import Optimizer

from traindx.capture.manual import few_entries
from traindx.capture.owners import Names
from traindx.capture.threads import this_thread
from traindx.capture.transfer import Lists, Numbers, Unread
from traindx.facts import Json, OptimizerFacts
from traindx.records import RUN, Event, EventKind, Scalar, Site
from traindx.stats import is_freed

_STARVED = 40
"""Steps without a gradient after which a tensor of no model is taken to get none any more."""


class ClearingCheck:
    """Whether anything cleared the gradients between two steps of an optimizer.

    `zero_grad` replaces `p.grad` or raises its `_version`. One parameter is watched: if its
    gradient is the same object at the same version when a backward pass starts as when the step
    (or the backward before) ended, nothing was cleared, and the pass adds onto the old gradient.
    No tensor is read. Accumulation clears once between two steps, which is enough; passes that
    leave the gradient alone (another model's) say nothing. Only the passes of measured steps are
    looked at. The parameter is known by its place in the optimizer, since a weak reference to it
    would keep `torch.utils.swap_tensors` from converting it.

    Args:
        optimizer: Gives the optimizer, None once it is gone.
    """

    def __init__(self, optimizer: Callable[[], Optimizer | None]) -> None:
        self._optimizer = optimizer
        self._place: tuple[int, int] | None = None
        self._seen: tuple[int, int] | None = None
        self._before: tuple[int, int] | None = None
        self._entries: Any = None
        self._shows = False
        self._cleared = False
        self._backwards = 0
        self._kept = self._discarded = self._lost = 0
        self._steps = self._uncleared = 0

    def backward_starts(self) -> None:
        """Compare with what was left behind."""
        self._before = self._state()
        if self._before is None:  # to clear by zeros looks like clipping, and is not counted
            self._discarded, self._kept = self._discarded + self._kept, 0
        shows = self._before != self._seen
        if not self._backwards:
            self._shows = shows
        if self._place is not None and (shows or self._changed_unseen()):
            self._cleared = True
        self._seen = self._before  # a step within this pass meets a gradient that none has left

    def backward_ended(self) -> None:
        """Remember what this pass has left."""
        self._seen = self._state()
        self._backwards += self._seen != self._before
        self._kept += self._seen != self._before

    def step_starts(self) -> None:
        """Judge the gradients the optimizer gets."""
        self._lost = self._discarded if self._state() == self._seen else 0
        if self._place is None or not self._backwards:
            return  # the first step, or a closure computes the gradients within the step
        self._steps += 1
        self._uncleared += not self._cleared

    def step_ended(self) -> None:
        """Begin to watch again."""
        self._seen, self._entries = self._state(), None
        if self._seen is None:
            self._place = self._with_gradient()
            self._seen = self._state()
        self._cleared, self._backwards, self._kept, self._discarded = False, 0, 0, 0

    def is_left(self) -> bool:
        """Whether the gradient watched is the one that the last step, or backward, has left.

        It may have been written to since, as by clipping.
        """
        seen, state = self._seen, self._state()
        return seen is not None and state is not None and state[0] == seen[0]

    def keep_entries(self) -> None:
        """Copy a few entries of the gradient: `grad.data.zero_()` raises no version.

        Not if it was cleared last time in a way that shows: programs clear in one way, and where
        one changes it, a single step is taken for uncleared.
        """
        self._entries = None if self._shows else _entries(self._grad())

    def fraction(self) -> float | None:
        """Fraction of steps with uncleared gradients since last asked; None without a step."""
        steps, uncleared, self._steps, self._uncleared = self._steps, self._uncleared, 0, 0
        return uncleared / steps if steps else None

    def lost(self) -> float | None:
        """Backward passes before the last step whose gradients were cleared; None if none were.

        Nothing is said if somebody has put other gradients in their place, made of all of them.
        """
        lost, self._lost = self._lost, 0
        return float(lost) if lost else None

    def _changed_unseen(self) -> bool:
        """Whether the entries kept are no longer those of the gradient."""
        entries, self._entries = self._entries, None
        now = None if entries is None else _entries(self._grad())
        if entries is None or now is None:
            return False
        return not now.equal(entries) if isinstance(now, Tensor) else now != entries

    def _with_gradient(self) -> tuple[int, int] | None:
        """The place of the first parameter that has one."""
        for i, params in enumerate(self._groups()):
            for j, param in enumerate(params):
                if param.grad is not None:
                    return i, j
        return None

    def _grad(self) -> Tensor | None:
        optimizer = self._optimizer()
        if self._place is None or optimizer is None:
            return None
        i, j = self._place
        groups = optimizer.param_groups
        if i >= len(groups) or j >= len(groups[i]["params"]):
            return None
        return groups[i]["params"][j].grad

    def _groups(self) -> Iterator[list[Tensor]]:
        optimizer = self._optimizer()
        groups = () if optimizer is None else optimizer.param_groups
        return (group["params"] for group in groups)

    def _state(self) -> tuple[int, int] | None:
        grad = self._grad()
        return None if grad is None else (id(grad), grad._version)


class TrackedOptimizer:
    """An optimizer, held weakly.

    Attributes:
        name: Unique name in the run.
        clearing: Whether its gradients are cleared between steps.
        thread: The thread that last stepped it, or trained what it holds.
        steps: Steps it has completed.
    """

    def __init__(self, optimizer: Optimizer, name: str) -> None:
        self._ref = weakref.ref(optimizer)
        self.name = name
        self.kind = type(optimizer).__name__
        self.clearing = ClearingCheck(self._ref)
        self.thread = this_thread()
        self._fed: dict[int, int] = {}
        self.steps = 0

    @property
    def optimizer(self) -> Optimizer | None:
        """The optimizer, None once it is gone."""
        return self._ref()

    def params(self) -> list[Tensor]:
        """The tensors it holds."""
        optimizer = self.optimizer
        if optimizer is None:
            return []
        return [param for group in optimizer.param_groups for param in group["params"]]

    def note_fed(self, params: list[Tensor]) -> bool:
        """Note which of the parameters it holds have a gradient now; whether any has."""
        fed = [id(param) for param in params if param.grad is not None]
        self._fed.update(dict.fromkeys(fed, self.steps))
        return bool(fed)

    def is_starved(self, param: Tensor) -> bool:
        """Whether a parameter has had no gradient at any of its last steps that were looked at."""
        return self._fed.get(id(param), -_STARVED) + _STARVED <= self.steps

    def step_ended(self) -> None:
        """Note a completed step."""
        self.steps += 1
        self.clearing.step_ended()

    def numbers(self) -> dict[str, float | Tensor]:
        """What is known of it, some of it on a device."""
        clearing = self.clearing
        numbers = {"lr": self.lr(), "grad.uncleared": clearing.fraction()}
        numbers["grad.discarded"] = clearing.lost()
        return {name: number for name, number in numbers.items() if number is not None}

    def lr(self) -> float | Tensor | None:
        """Learning rate of its first group."""
        optimizer = self.optimizer
        groups = [] if optimizer is None else optimizer.param_groups
        lr = groups[0].get("lr") if groups else None
        if isinstance(lr, float | int):
            return float(lr)
        return _number(lr) if isinstance(lr, Tensor) else None

    def facts(self, stale: list[Tensor], unheld: list[str]) -> OptimizerFacts:
        """It described."""
        optimizer = self.optimizer
        groups = [] if optimizer is None else optimizer.param_groups
        return OptimizerFacts(
            self.name,
            self.kind,
            tuple(_settings(group) for group in groups),
            len(self.params()),
            tuple(tuple(param.shape) for param in stale),
            tuple(unheld),
        )


class Optimizers:
    """Every optimizer that has stepped."""

    def __init__(self) -> None:
        self._tracked: dict[int, TrackedOptimizer] = {}
        self._names = Names()
        self._flags: list[tuple[int, str, Tensor]] = []

    def __iter__(self) -> Iterator[TrackedOptimizer]:
        return iter([t for t in [*self._tracked.values()] if t.optimizer is not None])

    def of_this_thread(self) -> list[TrackedOptimizer]:
        """Those that this thread stepped last: another may be freeing the gradients of its own."""
        here, every = this_thread(), [*self._tracked.values()]
        return [t for t in every if t.thread is here and t.optimizer is not None]

    def trained_here(self, ids: set[int]) -> None:
        """The calling thread, which is not the one watched, trains the parameters of these ids."""
        for tracked in self:
            if any(id(param) in ids for param in tracked.params()):
                tracked.thread = this_thread()

    def unread(self, step: int) -> Unread:
        """The numbers of each, at the site of its name, for the host to read."""
        found = [
            (quantity, tracked.name, value)
            for tracked in self
            for quantity, value in tracked.numbers().items()
        ]
        keys = [(quantity, name) for quantity, name, _ in found]

        def items(numbers: Numbers, _lists: Lists) -> Iterator[Scalar]:
            for (quantity, name), number in zip(keys, numbers, strict=True):
                yield Scalar(step, quantity, number, Site("", name))

        return Unread([value for _, _, value in found], [], items)

    def may_be_idle(self, step: int, optimizer: Optimizer) -> None:
        """Note a step that a GradScaler may have made an idle one, of which a device knows."""
        found = vars(optimizer).get("found_inf")
        if isinstance(found, Tensor) and isinstance(flag := _number(found), Tensor):
            self._flags.append((step, self.of(optimizer).name, flag))

    def idle(self, *, fetch: bool = True) -> list[Unread]:
        """The steps that were idle, for the host to read, if it is time to `fetch` numbers."""
        if not (self._flags and fetch):
            return []
        flags, self._flags = self._flags, []
        keys = [(step, name) for step, name, _ in flags]

        def items(numbers: Numbers, _lists: Lists) -> Iterator[Event]:
            for (step, name), number in zip(keys, numbers, strict=True):
                if number:
                    yield Event(step, EventKind.AMP_SKIPPED, RUN, {"optimizer": name})

        return [Unread([flag for _, _, flag in flags], [], items)]

    def of(self, optimizer: Optimizer) -> TrackedOptimizer:
        """What is kept of an optimizer."""
        known = self._tracked.get(id(optimizer))
        if known is None or known.optimizer is not optimizer:
            self._tracked = {id(each): t for t in self if (each := t.optimizer) is not None}
            name = self._names.new(type(optimizer).__name__)
            known = self._tracked[id(optimizer)] = TrackedOptimizer(optimizer, name)
        known.thread = this_thread()
        return known

    def has_stepped(self, optimizer: Optimizer) -> bool:
        """Whether an optimizer has completed a step."""
        known = self._tracked.get(id(optimizer))
        return known is not None and known.optimizer is optimizer and known.steps > 0

    def held(self) -> set[int]:
        """Ids of the parameters that some living optimizer holds."""
        return {id(param) for tracked in self for param in tracked.params()}


def is_idle(optimizer: Optimizer) -> bool:
    """Whether a GradScaler makes this step of a fused optimizer an idle one.

    Its hooks run even then. On the CPU the flag can be read; on a device the step counts as one,
    and `Optimizers.may_be_idle` has the rest.
    """
    found = vars(optimizer).get("found_inf")
    return isinstance(found, Tensor) and found.is_cpu and bool(found)


def _entries(grad: Tensor | None) -> Any:
    """A copy of a few entries of a gradient that is on the host."""
    if grad is None or not grad.is_cpu or grad.is_sparse or is_freed(grad):
        return None
    few = few_entries(grad)
    if type(few) is not Tensor:  # a subclass may give out no list
        return few.clone()
    return cast(Any, few).tolist()


def _number(tensor: Tensor) -> float | Tensor | None:
    """The number in a tensor of the user's, a copy of it if it is on a device."""
    if tensor.numel() != 1 or tensor.is_meta:
        return None
    return float(tensor) if tensor.is_cpu else tensor.detach().reshape(()).clone()


def _settings(group: dict[str, object]) -> dict[str, Json]:
    settings = {key: _setting(value) for key, value in group.items() if key != "params"}
    return {key: value for key, value in settings.items() if value is not None}


def _setting(value: object) -> Json:
    """A setting as plain data, such as Adam's two betas; None if it is none."""
    if isinstance(value, bool | int | float | str):
        return value
    several = cast("tuple[object, ...]", value) if type(value) is tuple else ()
    numbers: list[Json] = [float(each) for each in several if isinstance(each, int | float)]
    return numbers if numbers and len(numbers) == len(several) else None
