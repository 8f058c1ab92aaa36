"""What steers an optimizer besides gradients: states that are loaded, schedulers that are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.optim.optimizer import Optimizer

from traindx.capture.optimizers import Optimizers
from traindx.capture.plateaus import Plateaus
from traindx.capture.replacing import replace, then
from traindx.capture.resumed import Resumed
from traindx.records import Scalar


class Steering:
    """Listens to `Optimizer.load_state_dict`, `torch.load` and `ReduceLROnPlateau.step`.

    Args:
        told: Called with a method of ours and what it is to be given, inside the training.
        step: The number of the step going on.

    Attributes:
        resumed: Trainings that go on from saved weights.
        plateaus: What schedulers were told.
    """

    def __init__(self, told: Callable[..., None], step: Callable[[], int]) -> None:
        self.resumed = Resumed()
        self.plateaus = Plateaus()
        self._told = told
        self._step = step
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        """Begin to listen."""
        told, resumed, plateaus = self._told, self.resumed, self.plateaus

        def restored(args: Any, _kwargs: Any, _none: Any) -> None:
            told(resumed.restored, args[0])

        def read(_args: Any, _kwargs: Any, content: Any) -> None:
            told(resumed.read, content)

        def metric(args: Any, kwargs: Any, _none: Any) -> None:
            told(plateaus.told, args, kwargs, self._step())

        taps: tuple[tuple[Any, str, Callable[[Any, Any, Any], None]], ...] = (
            (Optimizer, "load_state_dict", restored),
            (torch, "load", read),
            (ReduceLROnPlateau, "step", metric),
        )
        self._undo = [replace(owner, name, then(tell)) for owner, name, tell in taps]

    def remove(self) -> None:
        """Stop listening."""
        while self._undo:
            self._undo.pop()()

    def scalars(self, step: int, optimizers: Optimizers) -> list[Scalar]:
        """What is known after a measured step."""
        return [*self.resumed.scalars(step, optimizers), *self.plateaus.scalars(optimizers)]
