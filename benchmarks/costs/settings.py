"""What a training is run with: nothing, traindx in its settings, or one read of every tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from benchmarks.costs.programs import Training

FIRST_EVERY = 32
"""One step of how many traindx measures after its dense start, until the budget is exceeded."""


class Setting:
    """Nothing: what is attached to a training, at its moments.

    Attributes:
        measured: The steps that were measured; None if all were alike.
        every: One step of how many is measured in the long run.
    """

    measured: set[int] | None = None
    every = 1

    def __init__(self, training: Training, folder: Path) -> None:
        self.training = training
        self.folder = folder

    def before_step(self) -> None:
        """A step is about to begin."""

    def after_backward(self) -> None:
        """The gradients are there."""

    def after_step(self, loss: Tensor) -> None:
        """The optimizer has stepped."""

    def finish(self) -> None:
        """The training is over."""


class Traindx(Setting):
    """`traindx.watch` with these arguments."""

    def __init__(self, training: Training, folder: Path, **arguments: Any) -> None:
        super().__init__(training, folder)
        import traindx

        model, optimizer = training.model, training.optimizer
        self._watch = traindx.watch(model, optimizer, name="cost", folder=folder, **arguments)
        self.every = arguments.get("every", FIRST_EVERY)

    def finish(self) -> None:
        from traindx.records import EventKind

        self._watch.close()
        run = self._watch.run
        self.measured = {event.step for event in run.events(EventKind.MEASURED)}
        for change in run.events(EventKind.CADENCE):
            self.every = int(str(change.detail.get("every", self.every)))


class Floor(Setting):
    """One sum over every tensor traindx measures: outputs, their gradients, those of parameters.

    Nothing of it is kept, compared or brought anywhere: what reading alone costs, with its hooks.
    """

    def __init__(self, training: Training, folder: Path) -> None:
        super().__init__(training, folder)
        for module in training.model.modules():
            module.register_forward_hook(self._output)

    def _output(self, _module: object, _inputs: object, output: object) -> None:
        tensor = output[0] if isinstance(output, tuple) else output
        if isinstance(tensor, Tensor):
            tensor.detach().sum()
            cast(Any, tensor).register_hook(_read)

    def after_backward(self) -> None:
        for param in self.training.model.parameters():
            if param.grad is not None:
                param.grad.sum()


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
    """

    title: str
    attach: Callable[[Training, Path], Setting]
    module: str = "torch"
    ladder: bool = False
    budget: float | None = None


def _traindx(title: str, *, budget: float | None = None, **arguments: Any) -> Choice:
    given = arguments if budget is None else {**arguments, "budget": budget}

    def attach(training: Training, folder: Path) -> Setting:
        return Traindx(training, folder, **given)

    ladder = "every" not in arguments
    return Choice(title, attach, "traindx", ladder, budget)


BARE = "bare"
OURS: dict[str, Choice] = {
    BARE: Choice("bare", Setting),
    "again": Choice("bare again (noise)", Setting),
    "floor": Choice("floor: one read of each tensor", Floor),
    "default": _traindx("traindx", budget=0.03),
    "every": _traindx("traindx --every 1", every=1),
    "budget-1": _traindx("traindx --budget 1%", budget=0.01),
    "budget-10": _traindx("traindx --budget 10%", budget=0.1),
    "trap-nan": _traindx("traindx --trap-nan", budget=0.03, trap_nan=True),
}
QUICK = ("again", "floor", "default", "every")


def step(training: Training, setting: Setting) -> None:
    """One step of the training."""
    setting.before_step()
    training.optimizer.zero_grad()
    outputs = training.model(training.inputs)
    loss = torch.nn.functional.cross_entropy(outputs, training.labels)
    loss.backward()
    setting.after_backward()
    training.optimizer.step()
    setting.after_step(loss)
