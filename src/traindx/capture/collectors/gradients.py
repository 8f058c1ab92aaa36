"""Every trainable parameter's gradient, as backward leaves it and as the optimizer gets it."""

from __future__ import annotations

import weakref

from torch import Tensor

from traindx.capture.arrays import on_host
from traindx.capture.collectors import Collector, Places
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Place, Recorder
from traindx.messages import say
from traindx.records import Point


class Gradients(Collector):
    """`grad` after each backward (the last of a step counts), `applied_grad` where it differs."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._versions: dict[tuple[TrackedModel, str], tuple[weakref.ref[Tensor], int]] = {}

    def after_backward(self, model: TrackedModel, scale: float | Tensor | None) -> None:
        """Measure the gradients this backward has written."""
        found = [
            ((model, fqn, Point.GRAD), grad)
            for fqn, param in model.trainable()
            if (grad := param.grad) is not None and self._changed(model, fqn, grad)
        ]
        self.recorder.tensors(self._dense(found), scale=scale)

    def before_step(self, places: Places) -> None:
        """Measure what was changed since (clipping), or never came through `backward`."""
        found: list[tuple[Place, Tensor]] = []
        for model, fqn, param in places:
            grad = param.grad
            if param.requires_grad:
                self.recorder.scalar(model, fqn, "grad.absent", float(grad is None))
            if grad is not None and self._changed(model, fqn, grad):
                seen = self.recorder.has((model, fqn, Point.GRAD))
                found.append(((model, fqn, Point.APPLIED_GRAD if seen else Point.GRAD), grad))
        self.recorder.tensors(self._dense(found))

    def let_go(self) -> None:
        """Forget what has been measured."""
        self._versions = {}

    def _changed(self, model: TrackedModel, fqn: str, grad: Tensor) -> bool:
        """Whether it is not the one last seen there; models may share a parameter."""
        seen, version = self._versions.get((model, fqn), (None, 0))
        # A closure may free a gradient, and the next one gets its address.
        if seen is not None and seen() is grad and version == grad._version:
            return False
        self._versions[model, fqn] = weakref.ref(grad), grad._version
        return True

    def _dense(self, found: list[tuple[Place, Tensor]]) -> list[tuple[Place, Tensor]]:
        """Sparse gradients by their stored entries: the rows that the batch touched, each once."""
        dense: list[tuple[Place, Tensor]] = []
        for place, grad in found:
            if not grad.is_sparse:
                dense.append((place, grad))
            elif grad.is_coalesced() or on_host(grad):
                dense.append((place, grad.detach().coalesce().values()))
            else:  # how often a row is stored, only the device knows
                self.recorder.skip(place, say("a sparse gradient on a device is not coalesced"))
        return dense
