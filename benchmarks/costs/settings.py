"""What a training is run with: nothing, traindx in its settings, or one read of every tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from benchmarks.costs.programs import Training

WARM = 3
"""First steps of a setting that describe the model, or fill caches: in no median."""
SETTLED = 64
"""First steps of a setting that measures all, which are measured more closely than those of a long
run: it counts what comes then.
"""
DENSE = 10
"""First steps of a setting that measures few: traindx measures all of these closely."""
LADDER_SETTLED = DENSE + 20
"""First steps of such a setting until what the dense ones left is saved and judged, even where a
step takes long: hardly any step of a long run is like these.
"""
NEVER = 10**9
"""One step of so many is the first one only."""
FIRST_EVERY = 32
"""One step of how many traindx measures after its dense start, until the budget is exceeded."""
EXEMPT = 200
"""Steps before a budget is enforced."""
GRACE = 0.25
"""Seconds of measuring before it is."""


class Setting:
    """Nothing: what is attached to a training, at its moments.

    Attributes:
        measured: The steps that were measured; None if all were alike.
        saved: The steps after which what had been measured was saved and judged.
        every: One step of how many is measured in the long run.
        since: The step from which the tool itself says that its budget is enforced; None if it is
            not.
        reported: What it says it has taken since then, as a fraction.
    """

    measured: frozenset[int] | None = None
    saved: frozenset[int] = frozenset()
    every = 1
    since: int | None = None
    reported: float | None = None

    def __init__(self, training: Training, folder: Path) -> None:
        self.training = training
        self.folder = folder

    def forward(self) -> Tensor:
        """Call the model."""
        return self.training.model(self.training.inputs)

    def backward(self, loss: Tensor) -> None:
        """Differentiate the loss."""
        loss.backward()

    def after_backward(self) -> None:
        """The gradients are there."""

    def after_step(self, loss: Tensor) -> None:
        """The optimizer has stepped."""

    def finish(self) -> None:
        """The training is over, or goes on without it."""


class Traindx(Setting):
    """`traindx.watch` with these arguments."""

    def __init__(self, training: Training, folder: Path, **arguments: Any) -> None:
        super().__init__(training, folder)
        import traindx

        self._steps = 0
        self._saved: set[int] = set()
        self._stop_noting = _note_saving(lambda: self._saved.add(self._steps))
        model, optimizer = training.model, training.optimizer
        self._watch = traindx.watch(model, optimizer, name="cost", folder=folder, **arguments)
        self.every = arguments.get("every", FIRST_EVERY)

    def after_step(self, loss: Tensor) -> None:
        self._steps += 1

    def finish(self) -> None:
        from traindx.records import EventKind

        self.saved = frozenset(self._saved)
        self._watch.close()
        self._stop_noting()
        run = self._watch.run
        if run.steps < self._steps - 1:
            notes = [str(note.detail["text"]) for note in run.events(EventKind.NOTE)]
            raise RuntimeError(f"traindx has seen {run.steps} of {self._steps} steps: {notes}")
        self.measured = frozenset(event.step for event in run.events(EventKind.MEASURED))
        self.since = cast("int | None", run.header.get("budget_since"))
        self.reported = cast("float | None", run.header.get("budget_fraction"))
        for change in run.events(EventKind.CADENCE):
            self.every = int(str(change.detail.get("every", self.every)))
        if self.since is None or self._steps - self.since < EXEMPT:
            return
        # The budget also passes over steps that cannot be paid for.
        measured = sum(step >= self.since for step in self.measured)
        self.every = max(self.every, round((self._steps - self.since) / max(measured, 1)))


def _note_saving(note: Callable[[], None]) -> Callable[[], None]:
    """Call `note` whenever traindx saves and judges; how to stop it."""
    from traindx.capture.journal import Journal

    original = Journal.hand_on

    def hand_on(self: Journal) -> int:
        note()
        return original(self)

    Journal.hand_on = hand_on
    return lambda: setattr(Journal, "hand_on", original)


class Floor(Setting):
    """One sum over every tensor traindx measures: outputs, their gradients, those of parameters.

    Nothing of it is kept, compared or brought anywhere: what reading alone costs, with its hooks.
    """

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        self._hooks = [
            module.register_forward_hook(self._output) for module in training.model.modules()
        ]

    def _output(self, _module: object, _inputs: object, output: object) -> None:
        tensor = output[0] if isinstance(output, tuple) else output
        if isinstance(tensor, Tensor):
            tensor.detach().sum()
            cast(Any, tensor).register_hook(_read)

    def after_backward(self) -> None:
        for param in self.training.model.parameters():
            if param.grad is not None:
                param.grad.sum()

    def finish(self) -> None:
        for hook in self._hooks:
            hook.remove()


def _read(gradient: Tensor) -> None:
    gradient.sum()


@dataclass(frozen=True)
class Choice:
    """A setting to choose.

    Attributes:
        title: For people.
        attach: Attaches it to a training, with a folder for what it writes.
        module: What must be installed.
        ladder: Whether it measures one step of many, so that many steps must be seen.
        budget: The largest fraction it may take, if it promises one.
        settles: First steps that count nowhere.
        leaves: Whether the training is as before once it has finished, so that it can come again.
        peer: Whether it is another tool.
        collects: What it collects, of another tool.
    """

    title: str
    attach: Callable[[Training, Path], Setting]
    module: str = "torch"
    ladder: bool = False
    budget: float | None = None
    settles: int = WARM
    leaves: bool = True
    peer: bool = False
    collects: str = ""


def _traindx(title: str, *, budget: float | None = None, **arguments: Any) -> Choice:
    given = arguments if budget is None else {**arguments, "budget": budget}

    def attach(training: Training, folder: Path) -> Setting:
        return Traindx(training, folder, **given)

    ladder = "every" not in arguments
    every_step = arguments.get("every") == 1
    settles = LADDER_SETTLED if ladder else SETTLED if every_step else WARM
    return Choice(title, attach, "traindx", ladder, budget, settles)


AGAIN = "again"
OURS: dict[str, Choice] = {
    AGAIN: Choice("bare again (noise)", Setting),
    "floor": Choice("floor: one read of each tensor", Floor),
    "listening": _traindx("traindx, nothing measured", every=NEVER),
    "default": _traindx("traindx", budget=0.03),
    "every": _traindx("traindx --every 1", every=1),
    "trap-nan": _traindx("traindx --trap-nan", budget=0.03, trap_nan=True),
}
BUDGETS: dict[float, str] = {0.01: "budget-1", 0.03: "default", 0.1: "budget-10"}
OURS |= {
    name: _traindx(f"traindx --budget {budget:.0%}", budget=budget)
    for budget, name in BUDGETS.items()
    if name not in OURS
}


def step(training: Training, setting: Setting) -> None:
    """One step of the training."""
    training.optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(setting.forward(), training.labels)
    setting.backward(loss)
    setting.after_backward()
    training.optimizer.step()
    setting.after_step(loss)
