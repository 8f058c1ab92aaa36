"""Every trainable parameter's gradient, as backward leaves it and as the optimizer gets it."""

from __future__ import annotations

from torch import Tensor

from traindx.capture.collectors import Collector, Places
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.records import Point


class Gradients(Collector):
    """`grad` after each backward (the last of a step counts), `applied_grad` where it differs."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._versions: dict[tuple[TrackedModel, str], tuple[int, int]] = {}

    def after_backward(self, model: TrackedModel, scale: float | Tensor | None) -> None:
        """Measure the gradients this backward has written."""
        for fqn, param in model.trainable():
            if (grad := param.grad) is not None and self._changed(model, fqn, grad):
                place = (model, fqn, Point.GRAD)
                self.recorder.tensor(place, _dense(grad), scale=scale, replace=True)

    def before_step(self, places: Places) -> None:
        """Measure what was changed since (clipping), or never came through `backward`."""
        for model, fqn, param in places:
            grad = param.grad
            if param.requires_grad:
                self.recorder.scalar(model, fqn, "grad.absent", float(grad is None))
            if grad is not None and self._changed(model, fqn, grad):
                seen = self.recorder.has((model, fqn, Point.GRAD))
                point = Point.APPLIED_GRAD if seen else Point.GRAD
                self.recorder.tensor((model, fqn, point), _dense(grad), replace=True)

    def round_starts(self, model: TrackedModel) -> None:
        """Forget the last step's versions."""
        self._versions = {}

    def _changed(self, model: TrackedModel, fqn: str, grad: Tensor) -> bool:
        """Whether it is not the one last seen there; models may share a parameter."""
        version = (id(grad), grad._version)
        changed = self._versions.get((model, fqn)) != version
        self._versions[model, fqn] = version
        return changed


def _dense(grad: Tensor) -> Tensor:
    """The stored entries of a sparse gradient: the rows that the batch touched."""
    return grad._values() if grad.is_sparse else grad
