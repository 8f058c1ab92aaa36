"""Clipping: when gradients are clipped, and by how much. Nothing waits for a device."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from traindx.capture.optimizers import TrackedOptimizer
from traindx.capture.transfer import Lists, Numbers, Unread
from traindx.records import RUN, Scalar

_ANY_NORM = 1e6
"""Norm from which on a call is taken to ask for the norm only."""
_TAKEN_CARE_OF = ("UNSCALED", "STEPPED")
"""Stages of an optimizer in which a GradScaler has divided its gradients by the scale."""


class Clipping:
    """What was seen of clipping since the last measured step.

    A clip is late if the gradients are those that the step before has left and no backward has
    followed. It is of scaled gradients if a GradScaler that steps has scaled the loss in this very
    step and has unscaled no optimizer's gradients since.
    """

    def __init__(self) -> None:
        self._began = (0, 0)
        self._scaler: Any = None
        self._scaled_at = -1
        self._scaler_steps = False
        self._calls = self._placed = self._late = self._scaled = 0
        self._norm: tuple[float | Tensor, float] | None = None

    def round_begins(self, step: int, backwards: int) -> None:
        """A step begins, after so many backward passes."""
        self._began = step, backwards

    def loss_scaled(self, scaler: object, step: int) -> None:
        """A GradScaler has multiplied a loss."""
        if self._scaler is None or self._scaler() is not scaler:
            self._scaler = weakref.ref(scaler)
        self._scaled_at = step

    def scaler_steps(self) -> None:
        """A GradScaler has been asked to step."""
        self._scaler_steps = True

    def clipped(
        self,
        largest: object,
        norm: object,
        step: int,
        backwards: int,
        optimizers: Iterable[TrackedOptimizer],
    ) -> None:
        """Gradients have been clipped.

        Args:
            largest: The largest norm they may have.
            norm: The norm they had; None in a step that is not measured.
            step: The step going on.
            backwards: Backward passes so far.
            optimizers: Those of the thread.
        """
        if not isinstance(largest, float | int) or not 0 < largest < _ANY_NORM:
            return
        self._calls += 1
        self._placed += self._began[0] == step  # of the others it is not known what came before
        if self._began == (step, backwards) and any(o.clearing.is_left() for o in optimizers):
            self._late += 1
        elif self._scaled_at == step and self._is_scaled(float(largest)):
            self._scaled += 1
        if isinstance(norm, Tensor) and norm.numel() == 1 and not norm.is_meta:
            value = norm.detach().reshape(())
            self._norm = (float(value) if value.is_cpu else value.clone()), float(largest)

    def _is_scaled(self, largest: float) -> bool:
        """Whether a GradScaler has yet to unscale, and the bound was not multiplied by its scale.

        The scale may be on a device, so its first value stands for it: 65536 unless it was given.
        """
        scaler: object = None if self._scaler is None else self._scaler()
        kept: dict[str, Any] = {} if scaler is None else vars(scaler)
        first = kept.get("_init_scale")
        if (
            not self._scaler_steps
            or not isinstance(first, float | int)
            or not largest * largest < first
        ):
            return False
        states: dict[int, dict[str, object]] = kept.get("_per_optimizer_states", {})
        stages = (getattr(state.get("stage"), "name", "") for state in states.values())
        return not any(stage in _TAKEN_CARE_OF for stage in stages)

    def unread(self, step: int) -> list[Unread]:
        """What was seen, for the host to read, and begin anew."""
        if not self._calls:
            return []
        shares = {"clip.scaled": self._scaled / self._calls}
        if self._placed:
            shares["clip.late"] = self._late / self._placed
        norm, self._norm = self._norm, None
        self._calls = self._placed = self._late = self._scaled = 0

        def items(numbers: Numbers, _lists: Lists) -> Iterable[Scalar]:
            for name, share in shares.items():
                yield Scalar(step, name, share, RUN)
            for number in numbers:
                if math.isfinite(number):
                    yield Scalar(step, "clip.ratio", number / largest, RUN)

        found, largest = ([], 1.0) if norm is None else ([norm[0]], norm[1])
        return [Unread(found, [], items)]


def largest_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """The largest norm among the arguments of `clip_grad_norm_`; None for another kind of norm."""
    kind = kwargs.get("norm_type", args[2] if len(args) > 2 else 2.0)
    if isinstance(kind, Tensor) or kind != 2:
        return None
    return kwargs.get("max_norm", args[1] if len(args) > 1 else None)
