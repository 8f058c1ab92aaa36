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
        self._versions: dict[int, tuple[int, int]] = {}

    def after_backward(self, model: TrackedModel, scale: float | Tensor | None) -> None:
        """Measure the gradients this backward has written."""
        for fqn, param in model.trainable():
            if param.grad is not None and self._changed(param):
                place = (model, fqn, Point.GRAD)
                self.recorder.tensor(place, _dense(param.grad), scale=scale, replace=True)

    def before_step(self, places: Places) -> None:
        """Measure what was changed since (clipping), or never came through `backward`."""
        for model, fqn, param in places:
            absent = param.grad is None
            if param.requires_grad:
                self.recorder.scalar(model, fqn, "grad.absent", float(absent))
            if param.grad is not None and self._changed(param):
                seen = self.recorder.has((model, fqn, Point.GRAD))
                point = Point.APPLIED_GRAD if seen else Point.GRAD
                self.recorder.tensor((model, fqn, point), _dense(param.grad), replace=True)

    def round_starts(self, model: TrackedModel) -> None:
        """Forget the last step's versions."""
        self._versions = {}

    def _changed(self, param: Tensor) -> bool:
        grad = param.grad
        assert grad is not None
        version = (id(grad), grad._version)
        changed = self._versions.get(id(param)) != version
        self._versions[id(param)] = version
        return changed


def _dense(grad: Tensor) -> Tensor:
    """The stored entries of a sparse gradient: the rows that the batch touched."""
    return grad._values() if grad.is_sparse else grad
