"""Updates written by hand call no hook; they are found by comparing parameters per backward."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch
from torch import Tensor

from traindx.capture.collectors import Places
from traindx.messages import say

BY_HAND = say(
    "parameters change without a call of an optimizer's `step` that can be seen (updated by hand, "
    "or a compiled step): steps are counted from their changes"
)


@dataclass(frozen=True, slots=True)
class _Print:
    """A few entries of a parameter as backward left it; `param.data` changes without a version."""

    param: weakref.ref[Tensor]
    version: int
    address: int
    entries: Tensor

    def changed(self) -> bool:
        param = self.param()
        if param is None:
            return False
        moved = param._version != self.version or param.data_ptr() != self.address
        return moved or not torch.equal(few_entries(param), self.entries)


class ManualUpdates:
    """Whether parameters with a gradient have changed though no optimizer stepped."""

    def __init__(self) -> None:
        self._places: Places = []
        self._prints: list[_Print] = []

    def backward_ended(self, places: Places) -> None:
        """Remember some of these parameters, as they are, that have a gradient."""
        held = [param for _, _, param in places if param.grad is not None]
        self._places = places
        self._prints = [
            _Print(weakref.ref(param), param._version, param.data_ptr(), few_entries(param).clone())
            for param in held[:2] + held[-1:]
        ]

    @property
    def watching(self) -> bool:
        """Whether there is something to compare."""
        return bool(self._prints)

    def changed(self) -> Places:
        """The parameters remembered, if one has changed since; they are given once an update."""
        if not any(kept.changed() for kept in self._prints):
            return []
        places = self._places
        self.forget()
        return places

    def forget(self) -> None:
        """There is an optimizer after all."""
        self._places, self._prints = [], []


def few_entries(tensor: Tensor) -> Tensor:
    """Some sixteen entries, spread over a tensor."""
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // 16)][:16]
