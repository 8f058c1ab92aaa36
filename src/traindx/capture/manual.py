"""Updates written by hand call no hook; they are found by comparing parameters per backward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from traindx.capture.collectors import Places
from traindx.capture.models import TrackedModel
from traindx.messages import say
from traindx.stats import is_freed

BY_HAND = say(
    "parameters change without a call of an optimizer's `step` that can be seen (updated by hand, "
    "or a compiled step): steps are counted from their changes"
)


@dataclass(frozen=True, slots=True)
class _Print:
    """A few entries of a parameter as backward left it; `param.data` changes without a version.

    The parameter is known by its name: a weak reference would keep it from being converted.
    """

    model: TrackedModel
    fqn: str
    version: int
    address: int
    entries: Tensor | None

    @classmethod
    def of(cls, model: TrackedModel, fqn: str, param: Tensor) -> _Print:
        # On a device the host would wait to compare them: there an update must raise a version.
        at_hand = param.is_cpu and not is_freed(param)
        entries = few_entries(param).clone() if at_hand else None
        return cls(model, fqn, param._version, param.data_ptr(), entries)

    def differs(self, param: Tensor) -> bool:
        """Whether the parameter is another now."""
        moved = param._version != self.version or param.data_ptr() != self.address
        if moved or self.entries is None:
            return moved
        return not torch.equal(few_entries(param), self.entries)


class ManualUpdates:
    """Whether parameters with a gradient have changed though no optimizer stepped."""

    def __init__(self) -> None:
        self._models: list[TrackedModel] = []
        self._prints: list[_Print] = []

    def backward_ended(self, places: Places) -> None:
        """Remember some of these parameters, as they are, that have a gradient."""
        held = [place for place in places if place[2].grad is not None]
        self._models = list(dict.fromkeys(model for model, _, _ in places))
        self._prints = [_Print.of(*place) for place in held[:2] + held[-1:]]

    @property
    def watching(self) -> bool:
        """Whether there is something to compare."""
        return bool(self._prints)

    def changed(self) -> Places:
        """All parameters, if one remembered has changed since; they are given once an update."""
        places = trained(self._models)
        params = {(model, fqn): param for model, fqn, param in places}
        for kept in self._prints:
            param = params.get((kept.model, kept.fqn))
            if param is not None and kept.differs(param):
                self.forget()
                return places
        return []

    def forget(self) -> None:
        """There is an optimizer after all."""
        self._models, self._prints = [], []


def trained(models: Iterable[TrackedModel]) -> Places:
    """The parameters of some models that require a gradient."""
    return [(model, *place) for model in models for place in model.trainable()]


def few_entries(tensor: Tensor) -> Tensor:
    """Some sixteen entries, spread over a tensor."""
    size, tensor = tensor.numel(), tensor.detach()
    apart = max(1, size // 16)
    if type(tensor) is Tensor and tensor.is_contiguous():  # one call takes a quarter of slices
        return tensor.as_strided((min(16, size),), (apart,))
    return tensor.reshape(-1)[::apart][:16]
