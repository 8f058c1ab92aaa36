"""The state of one normalization layer, whatever framework it is from.

Shapes: `C` channels; kernels are as torch lays them, [out, in, *spatial].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traindx.messages import Message, say
from traindx.norm.arrays import Array
from traindx.norm.spec import NormSpec

WEIGHT, BIAS, MEAN, VAR = "weight", "bias", "running_mean", "running_var"
DIRECTION = "direction"
"""What weight normalization divides by its length; its `weight` is the magnitude."""
KERNEL, U, V = "kernel", "u", "v"
"""The weight of spectral normalization, as it was before the division, and its vectors."""


@dataclass(frozen=True, slots=True)
class NormState:
    """One layer.

    Attributes:
        name: Where it is in its model, parts joined by dots.
        spec: What it computes.
        arrays: Its numbers by what they are.
        batches: How many batches it has counted; None if nobody has.
        assumed: Options that its file does not tell, taken from the defaults of its framework.
    """

    name: str
    spec: NormSpec
    arrays: Mapping[str, Array]
    batches: int | None = None
    assumed: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that weight, bias and statistics share; empty without any of them."""
        for role in (WEIGHT, BIAS, MEAN):
            if role in self.arrays:
                return tuple(self.arrays[role].shape)
        return ()

    @property
    def channels(self) -> int:
        """Elements of that shape."""
        return int(np.prod(self.shape)) if self.shape else 0


class RefusedError(Exception):
    """A layer that cannot be carried over without a loss: what would be lost, and the repair."""

    def __init__(self, reason: Message) -> None:
        super().__init__(reason)
        self.reason = reason


class UnsoundError(RefusedError):
    """A layer whose numbers have no answer in any framework."""


def refuse_unsound(state: NormState) -> None:
    """Refuse numbers with which no evaluation has an answer.

    Raises:
        UnsoundError: Shapes disagree, something is not finite, or a variance is negative.
    """
    for role, values in state.arrays.items():
        if values.dtype.kind != "f":
            raise UnsoundError(
                say("its {role} holds whole numbers: it is no normalization", role=role)
            )
        if role in {WEIGHT, BIAS, MEAN, VAR} and tuple(values.shape) != state.shape:
            if state.spec.kind == "WeightNorm":
                continue
            raise UnsoundError(
                say(
                    "its {role} has shape {shape} and its other numbers {other}: it is damaged, or "
                    "no normalization",
                    role=role,
                    shape=tuple(values.shape),
                    other=state.shape,
                )
            )
        _refuse_non_finite(role, values)
    var = state.arrays.get(VAR)
    if var is not None and bool((var < 0).any()):
        place = int(np.argmin(var))
        raise UnsoundError(
            say(
                "its running_var is {value:.4g} at index {place}, and has no root; estimate it "
                "anew with `traindx norm recalibrate`",
                value=float(var.flat[place]),
                place=place,
            )
        )


def _refuse_non_finite(role: str, values: Array) -> None:
    bad = ~np.isfinite(values)
    if bool(bad.any()):
        place = int(np.argmax(bad))
        raise UnsoundError(
            say(
                "its {role} is {value} at index {place}, so evaluation has no answer; repair the "
                "layer first",
                role=role,
                value=str(values.flat[place]),
                place=place,
            )
        )
