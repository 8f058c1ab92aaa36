"""The optimizers in use, and whether the gradients they get were cleared before."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

from torch import Tensor
from torch.optim.optimizer import Optimizer

from traindx.capture.manual import few_entries
from traindx.capture.owners import unique
from traindx.capture.threads import this_thread
from traindx.facts import Json, OptimizerFacts
from traindx.records import Scalar, Site


class ClearingCheck:
    """Whether anything cleared the gradients between two steps of an optimizer.

    `zero_grad` replaces `p.grad` or raises its `_version`. One parameter is watched: if its
    gradient is the same object at the same version when a backward pass starts as when the step
    (or the backward before) ended, nothing was cleared, and the pass adds onto the old gradient.
    No tensor is read. Accumulation clears once between two steps, which is enough; passes that
    leave the gradient alone (another model's) say nothing. Only the passes of measured steps are
    looked at.
    """

    def __init__(self) -> None:
        self._param: weakref.ref[Tensor] | None = None
        self._seen: tuple[int, int] | None = None
        self._before: tuple[int, int] | None = None
        self._entries: Tensor | None = None
        self._cleared = False
        self._backwards = 0
        self._steps = self._uncleared = 0

    def backward_starts(self) -> None:
        """Compare with what was left behind."""
        self._before = self._state()
        if self._param is not None and (self._before != self._seen or self._changed_unseen()):
            self._cleared = True

    def backward_ended(self) -> None:
        """Remember what this pass has left."""
        self._seen = self._state()
        self._backwards += self._seen != self._before

    def step_starts(self) -> None:
        """Judge the gradients the optimizer gets."""
        if self._param is None or not self._backwards:
            return  # the first step, or a closure computes the gradients within the step
        self._steps += 1
        self._uncleared += not self._cleared

    def step_ended(self, optimizer: Optimizer) -> None:
        """Begin to watch again."""
        self._seen, self._entries = self._state(), None
        if self._seen is None:
            params = (param for group in optimizer.param_groups for param in group["params"])
            param = next((param for param in params if param.grad is not None), None)
            self._param = None if param is None else weakref.ref(param)
            self._seen = self._state()
        self._cleared, self._backwards = False, 0

    def keep_entries(self) -> None:
        """Copy a few entries of the gradient: `grad.data.zero_()` raises no version."""
        grad = self._grad()
        if grad is not None and grad.device.type == "cpu" and not grad.is_sparse:
            self._entries = few_entries(grad).clone()

    def fraction(self) -> float | None:
        """Fraction of steps with uncleared gradients since last asked; None without a step."""
        steps, uncleared, self._steps, self._uncleared = self._steps, self._uncleared, 0, 0
        return uncleared / steps if steps else None

    def _changed_unseen(self) -> bool:
        """Whether the entries kept are no longer those of the gradient."""
        entries, self._entries = self._entries, None
        grad = self._grad()
        return entries is not None and grad is not None and not few_entries(grad).equal(entries)

    def _grad(self) -> Tensor | None:
        param = self._param() if self._param else None
        return None if param is None else param.grad

    def _state(self) -> tuple[int, int] | None:
        grad = self._grad()
        return None if grad is None else (id(grad), grad._version)


class TrackedOptimizer:
    """An optimizer, held weakly.

    Attributes:
        name: Unique name in the run.
        clearing: Whether its gradients are cleared between steps.
        thread: The thread that stepped it last.
        fed: Ids of parameters that have had a gradient at a step of it.
        steps: Steps it has completed.
    """

    def __init__(self, optimizer: Optimizer, name: str) -> None:
        self._ref = weakref.ref(optimizer)
        self.name = name
        self.kind = type(optimizer).__name__
        self.clearing = ClearingCheck()
        self.thread = this_thread()
        self.fed: set[int] = set()
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

    def note_fed(self) -> None:
        """Note which parameters have a gradient now."""
        self.fed.update(id(param) for param in self.params() if param.grad is not None)

    def step_ended(self) -> None:
        """Note a completed step."""
        self.steps += 1
        if (optimizer := self.optimizer) is not None:
            self.clearing.step_ended(optimizer)

    def scalars(self) -> dict[str, float]:
        """What is known of it without reading a device."""
        numbers = {"lr": self.lr(), "grad.uncleared": self.clearing.fraction()}
        return {name: number for name, number in numbers.items() if number is not None}

    def lr(self) -> float | None:
        """Learning rate of its first group; None where it is a tensor on a device."""
        optimizer = self.optimizer
        lr = optimizer.param_groups[0].get("lr") if optimizer else None
        if isinstance(lr, Tensor):
            return float(lr) if lr.device.type == "cpu" else None
        return float(lr) if isinstance(lr, int | float) else None

    def facts(self, stale: list[Tensor], unheld: list[str]) -> OptimizerFacts:
        """It described."""
        groups = self.optimizer.param_groups if self.optimizer else []
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
        self._names: set[str] = set()

    def __iter__(self) -> Iterator[TrackedOptimizer]:
        return iter([t for t in self._tracked.values() if t.optimizer is not None])

    def of_this_thread(self) -> list[TrackedOptimizer]:
        """Those that this thread stepped last: another may be freeing the gradients of its own."""
        here = this_thread()
        return [tracked for tracked in self if tracked.thread is here]

    def scalars(self, step: int) -> list[Scalar]:
        """The numbers of each, at the site of its name."""
        return [
            Scalar(step, quantity, value, Site("", tracked.name))
            for tracked in self
            for quantity, value in tracked.scalars().items()
        ]

    def of(self, optimizer: Optimizer) -> TrackedOptimizer:
        """What is kept of an optimizer."""
        known = self._tracked.get(id(optimizer))
        if known is None or known.optimizer is not optimizer:
            name = unique(type(optimizer).__name__, self._names)
            self._names.add(name)
            known = self._tracked[id(optimizer)] = TrackedOptimizer(optimizer, name)
        known.thread = this_thread()
        return known

    def held(self) -> set[int]:
        """Ids of the parameters that some living optimizer holds."""
        return {id(param) for tracked in self for param in tracked.params()}


def is_idle(optimizer: Optimizer) -> bool:
    """Whether a GradScaler makes this step of a fused optimizer an idle one.

    Its hooks run even then. On the CPU the flag can be read.
    """
    found = vars(optimizer).get("found_inf")
    return isinstance(found, Tensor) and found.device.type == "cpu" and bool(found)


def _settings(group: dict[str, object]) -> dict[str, Json]:
    return {
        key: value
        for key, value in group.items()
        if key != "params" and isinstance(value, bool | int | float | str)
    }
