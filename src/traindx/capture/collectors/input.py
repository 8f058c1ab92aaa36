"""What a model is given."""

from __future__ import annotations

from traindx.capture.collectors import Collector
from traindx.capture.models import TrackedModel
from traindx.nested import tensors
from traindx.records import Point


class Inputs(Collector):
    """The first floating-point tensor among a model's arguments, by position, then by keyword."""

    def forward_starts(self, model: TrackedModel, inputs: tuple[object, ...]) -> None:
        """Measure it before the forward pass can change it."""
        tensor = next((tensor for tensor in tensors(inputs) if tensor.is_floating_point()), None)
        if tensor is not None:
            self.recorder.tensor((model, "", Point.INPUT), tensor, zeros=True)
            if tensor.requires_grad:
                self.recorder.scalar(model, "", "input.differentiated", 1.0)
