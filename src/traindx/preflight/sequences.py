"""Sequences in a batch: which axis is time, whether the target is shifted, what is padding.

Legend: N samples, T positions; time is axis 1 of (N, T, ...) or axis 0 of (T, N, ...).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from traindx.preflight.case import Case
from traindx.preflight.structures import named_tensors

_SAME = 0.99
"""Of the targets, those that must be the next input."""
_MOVING = 0.2
"""Of the inputs, those that must differ from the next: else shifted and not shifted are one."""


@dataclass(frozen=True, slots=True)
class Positions:
    """A tensor of the batch that is a sequence.

    Attributes:
        values: The tensor.
        time: Its axis of time, 0 or 1.
        counted: Where it says something, of shape (N, T) or (T, N) as its own.
        before: Positions that the model puts before it, such as one for the sample as a whole.
    """

    values: Tensor
    time: int
    counted: Tensor
    before: int = 0

    @property
    def steps(self) -> int:
        """T."""
        return self.values.shape[self.time]

    def aligned(self, tensor: Tensor) -> Tensor | None:
        """Some tensor with its first two axes as these; None if it has no such axes."""
        samples, steps = self.values.shape[1 - self.time], self.steps
        own = tuple(self.values.shape[:2])
        if samples == steps or tuple(tensor.shape[1:3]) == (steps, steps):
            return None  # which axis is which cannot be told
        if tensor.dim() >= 2 and tuple(tensor.shape[:2]) == own:
            return tensor
        if tensor.dim() >= 2 and tuple(tensor.shape[:2]) == own[::-1]:
            return tensor.transpose(0, 1)
        if self.before and self.time and tuple(tensor.shape[:2]) == (samples, self.before + steps):
            return tensor[:, self.before :]
        if tensor.dim() >= 3 and (tensor.shape[0], tensor.shape[2]) == (samples, steps):
            moved = tensor.movedim(2, 1)  # channels, or heads, before time
            return moved if self.time else moved.transpose(0, 1)
        if tensor.dim() and tensor.shape[0] == samples * steps:
            return tensor.reshape(*own, *tensor.shape[1:])
        return None

    def only(self, tensor: Tensor, where: Tensor) -> Tensor | None:
        """What a tensor holds at some positions, 0 at others; None if it has no positions."""
        aligned = self.aligned(tensor)
        if aligned is None:
            return None
        mask = where.reshape(*where.shape, *[1] * (aligned.dim() - 2))
        return torch.where(mask, aligned, torch.zeros_like(aligned))


def predicted(case: Case, targets: Sequence[Tensor]) -> Positions | None:
    """The input of which a target is the next value at every position; None if there is none."""
    for values in _sequences(case):
        for target in targets:
            for time in (1, 0):
                counted = _shifted(values, target, time)
                if counted is not None:
                    return Positions(values, time, counted)
    return None


def _sequences(case: Case) -> Iterator[Tensor]:
    """Tensors of the batch that may be sequences: of integers, or of vectors."""
    for _, tensor in named_tensors([list(case.args), dict(case.kwargs)]):
        axes = 3 if tensor.is_floating_point() else 2
        if tensor.dim() == axes and tensor.dtype is not torch.bool:
            yield tensor


def _shifted(values: Tensor, target: Tensor, time: int) -> Tensor | None:
    """Where a target counts, if it is the input at the next position wherever it does."""
    steps = values.shape[time]
    if steps < 2 or target.is_floating_point() != values.is_floating_point():
        return None
    later, before = values.narrow(time, 1, steps - 1), values.narrow(time, 0, steps - 1)
    if target.numel() == values.numel():
        told = target.reshape(values.shape).narrow(time, 0, steps - 1)
    elif target.numel() == later.numel():
        told = target.reshape(later.shape)
    else:
        return None
    told = told.to(values.device)
    counts = torch.ones_like(told, dtype=torch.bool) if told.is_floating_point() else told >= 0
    number = int(counts.sum())
    same = int(((told == later) & counts).sum())
    moving = int(((later != before) & counts).sum())
    if not number or same < _SAME * number or moving < _MOVING * number:
        return None
    flat = counts if counts.dim() == 2 else counts.flatten(2).any(2)
    last = torch.ones_like(flat.narrow(time, 0, 1))  # the last position's target is not known
    return torch.cat([flat, last], time)


def padded(case: Case) -> tuple[Positions, Tensor] | None:
    """A sequence given with a mask, and where the mask says that it is padding; None if none is.

    Which side of a mask is padding, libraries disagree; it is told by the sequence: constant, at
    the beginning or the end.
    """
    for values in _sequences(case):
        for name, mask in _named(case):
            before = _put_before(values, mask)
            if mask is values or before is None:
                continue
            if mask.dtype is not torch.bool and not ("mask" in name and _is_binary(mask)):
                continue
            own = mask[:, before:]
            for padding in (own == 0, own != 0):
                for time in (1,) if before else (1, 0):
                    if _is_padding(values, padding, time):
                        return Positions(values, time, ~padding, before), padding
    return None


def _put_before(values: Tensor, mask: Tensor) -> int | None:
    """Positions that a mask has before a sequence, alike in all samples; None if it is not its."""
    if mask.dim() != 2 or mask.shape[0] != values.shape[0]:
        return None
    more = mask.shape[1] - values.shape[1]
    if not 0 <= more < values.shape[1] or not bool((mask[:, :more] == mask[:1, :more]).all()):
        return None
    return more


def _named(case: Case) -> Iterator[tuple[str, Tensor]]:
    """The tensors of the batch by the names of the model's arguments."""
    try:
        bound = inspect.signature(case.model.forward).bind(*case.args, **case.kwargs)
        given = dict(bound.arguments)
    except (TypeError, ValueError):
        given = {str(i): value for i, value in enumerate(case.args)} | dict(case.kwargs)
    yield from named_tensors(given)


def _is_binary(mask: Tensor) -> bool:
    return bool(((mask == 0) | (mask == 1)).all())


def _is_padding(values: Tensor, padding: Tensor, time: int) -> bool:
    if not bool(padding.any()) or bool(padding.all()):
        return False
    held = values[padding]
    if not bool((held == held.reshape(-1)[0]).all()):
        return False
    steps = padding.shape[time]
    if steps < 2:
        return False
    change = padding.narrow(time, 1, steps - 1).int() - padding.narrow(time, 0, steps - 1).int()
    return bool((change >= 0).all()) or bool((change <= 0).all())


def other(values: Tensor, where: Tensor) -> Tensor:
    """The sequence with other values, of those that occur in it, at some positions."""
    if values.is_floating_point():
        mask = where.reshape(*where.shape, *[1] * (values.dim() - 2))
        noise = torch.randn(values.shape, generator=torch.Generator().manual_seed(0))
        spread = values.detach().float().std().clamp(min=1e-3)
        changed = values.detach() + (spread.cpu() * noise).to(values)
        return torch.where(mask, changed, values.detach())
    unique = cast(Any, torch).unique
    known, place = cast("tuple[Tensor, Tensor]", unique(values, return_inverse=True))
    return torch.where(where, known[(place + 1) % len(known)], values)
