"""The plain steps between two measured ones, in as few operations as tell what must be known.

After a backward pass nothing of ours is in the processor's caches any more, so that every function
and every object touched costs several times what it does in a loop: an unmeasured step must touch
few of them. Whatever is out of the ordinary goes the long way through `Capture`.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Any, cast
from weakref import ref

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from traindx.capture.cadence import Cadence
from traindx.capture.guard import Guarded
from traindx.capture.losses import LossTape, is_loss
from traindx.capture.models import TrackedModel
from traindx.capture.optimizers import TrackedOptimizer
from traindx.capture.rounds import Rounds
from traindx.capture.taps import in_graph_task

_internals = cast(Any, torch)._C
dispatch_modes: Callable[[], int] = _internals._len_torch_dispatch_stack
function_modes: Callable[[], int] = _internals._len_torch_function_stack
is_grad_enabled = torch.is_grad_enabled


def _nothing() -> None:
    """What a weak reference to nothing gives."""


class Quiet:
    """Steps in which one model is trained by one optimizer, and nothing is measured.

    Args:
        rounds: The steps.
        tape: The losses.
        cadence: Told of the end of each step.
        clock: Seconds.
        life: Told of a failure of ours, and asked whether a CUDA graph is being captured.

    Attributes:
        backwards: Backward passes seen.
    """

    def __init__(
        self,
        rounds: Rounds,
        tape: LossTape,
        cadence: Cadence,
        clock: Callable[[], float],
        life: Guarded,
    ) -> None:
        self.backwards = 0
        self._rounds = rounds
        self._tape = tape
        self._cadence = cadence
        self._clock = clock
        self._life = life
        self._root: Callable[[], nn.Module | None] = _nothing
        self._optimizer: Callable[[], Optimizer | None] = _nothing
        self._model = ""
        self._tracked: TrackedOptimizer | None = None
        self._steps = 0
        self._until = 0.0
        self._ends: list[float] = []
        self._loss: float | Tensor | None = None

    def begin(
        self, model: TrackedModel, tracked: TrackedOptimizer, steps: int, until: float
    ) -> None:
        """From now on, `steps` steps of this model and optimizer need nothing but to be counted.

        Args:
            model: The only model.
            tracked: The only optimizer.
            steps: How many.
            until: The time from which a step's end goes the long way in any case.
        """
        root, optimizer = model.root, tracked.optimizer
        if root is None or optimizer is None:
            return
        self._root, self._optimizer = ref(root), ref(optimizer)
        self._model, self._tracked = model.name, tracked
        self._steps, self._until = steps, until

    def leave(self) -> None:
        """Something else has come up: all goes the long way."""
        self._root = self._optimizer = _nothing
        if self._ends:
            self._count()

    def _count(self) -> None:
        """Tell whoever counts steps of those that have passed; the round's number goes along."""
        ends, self._ends = self._ends, []
        if ends and self._tracked is not None:
            self._tracked.steps += len(ends)
            self._rounds.alone_turned(self._tracked.name, len(ends))
            self._cadence.steps_passed(ends)

    def forward_starts(self, module: nn.Module) -> bool:
        """The outermost module of a forward pass is called."""
        try:
            root = self._root()
            if module is root and module.training and is_grad_enabled():
                return True
            return root is not None and in_graph_task()  # checkpointing runs a segment again
        except Exception as error:
            return self._failed(error)

    def backward_starts(self, tensors: object) -> bool:
        """The user calls `backward` on one loss; it is read while it is in reach."""
        try:
            if type(tensors) is not Tensor or self._root() is None or self._tape.scaling:
                return False
            if tensors.is_leaf or dispatch_modes() or function_modes():
                return False
            self._loss = self._read(tensors)
            self.backwards += self._loss is not None
        except Exception as error:
            return self._failed(error)
        return self._loss is not None

    def _read(self, loss: Tensor) -> float | Tensor | None:
        """A loss, which the host reads at once on the CPU; None of what is none."""
        if not loss.is_cpu:
            if self._life.is_capturing():
                self.leave()
                return None
            return loss.detach().clone() if is_loss(loss) else None
        try:
            number = loss.item()
        except RuntimeError:
            return None  # it has several elements
        return number if isinstance(number, float) else None

    def backward_ended(self) -> bool:
        """Gradients are there: the loss counts. An optimizer may have stepped meanwhile."""
        loss, self._loss = self._loss, None
        if loss is not None:
            self._tape.unread.append((self._rounds.step, self._model, loss))
        return self._root() is not None

    def step_starts(self, optimizer: Optimizer) -> bool:
        """An optimizer is about to step."""
        return optimizer is self._optimizer()

    def step_ended(self, optimizer: Optimizer) -> bool:
        """An optimizer has stepped, which ends the step unless more is to be done."""
        if optimizer is not self._optimizer():
            return False
        now = self._clock()
        idle = "found_inf" in optimizer.__dict__  # a GradScaler's, whose step may be an idle one
        if idle or now >= self._until or len(self._ends) >= self._steps:
            self._count()
            return False
        self._rounds.step += 1
        self._ends.append(now)
        return True

    def _failed(self, error: Exception) -> bool:
        self.leave()
        self._life.give_up(error)
        return False


# What this thread has worked, since waiting for another one that holds the interpreter would count,
# too: beside busy threads that is several short steps. On Windows that clock is too coarse.
_now = time.perf_counter_ns if sys.platform == "win32" else time.thread_time_ns


class Timed:
    """A `Quiet` whose moments are timed for one step, to know what the others cost.

    Args:
        quiet: What does the work.
        done: Called when the step has ended.

    Attributes:
        seconds: What the moments of the last steps timed have taken.
    """

    def __init__(self, quiet: Quiet, done: Callable[[], None]) -> None:
        self.seconds: deque[float] = deque(maxlen=33)
        self._quiet = quiet
        self._done = done
        self._taken = 0

    def forward_starts(self, module: nn.Module) -> bool:
        """As `Quiet` does."""
        began = _now()
        taken = self._quiet.forward_starts(module)
        self._taken += _now() - began
        return taken

    def backward_starts(self, tensors: object) -> bool:
        """As `Quiet` does."""
        began = _now()
        taken = self._quiet.backward_starts(tensors)
        self._taken += _now() - began
        return taken

    def backward_ended(self) -> bool:
        """As `Quiet` does."""
        began = _now()
        taken = self._quiet.backward_ended()
        self._taken += _now() - began
        return taken

    def step_starts(self, optimizer: Optimizer) -> bool:
        """As `Quiet` does."""
        return self._quiet.step_starts(optimizer)

    def step_ended(self, optimizer: Optimizer) -> bool:
        """As `Quiet` does, for the last time."""
        began = _now()
        taken = self._quiet.step_ended(optimizer)
        seconds = 1e-9 * (self._taken + _now() - began)
        self._taken = 0
        if taken:
            self.seconds.append(seconds)
        self._done()
        return taken

    @property
    def typical(self) -> float | None:
        """Seconds of a step; None if none was timed."""
        return median(self.seconds) if self.seconds else None
