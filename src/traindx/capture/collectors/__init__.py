"""What is measured: a file a collector, each saying where to tap.

A collector decides nothing and reads no device; what it computes stays there.
"""

from __future__ import annotations

from torch import Tensor, nn

from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder

Places = list[tuple[TrackedModel, str, Tensor]]
"""Parameters an optimizer holds, with their model and fqn."""


class Collector:
    """The moments of a measured step; a collector overrides those it needs."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def watches(self) -> bool:
        """Whether it looks at outputs, asked when a forward pass begins."""
        return True

    def forward_starts(self, model: TrackedModel, inputs: tuple[object, ...]) -> None:
        """The model is called with these arguments, with gradients enabled."""

    def output(
        self, model: TrackedModel, fqn: str, module: nn.Module, tensor: Tensor | None
    ) -> None:
        """A module has returned, with gradients enabled; the first tensor of its output."""

    def loss_found(self, loss: Tensor) -> None:
        """A loss is about to be differentiated."""

    def before_backward(self, model: TrackedModel) -> None:
        """A loss of the model is about to be differentiated."""

    def after_backward(self, model: TrackedModel, scale: float | Tensor | None) -> None:
        """The model's gradients are as backward left them, times the loss `scale`."""

    def before_step(self, places: Places) -> None:
        """An optimizer is about to change these parameters."""

    def after_step(self, places: Places) -> None:
        """An optimizer has changed these parameters."""

    def round_starts(self, model: TrackedModel) -> None:
        """A step that will be measured begins for a confirmed model."""

    def round_ends(self, model: TrackedModel) -> None:
        """The measured step of a confirmed model is complete."""

    def let_go(self) -> None:
        """Refer to no tensor, not even weakly.

        The measured step is over, a forward pass has failed, or the user exchanges what two tensors
        hold, which torch refuses as long as anything refers to them weakly.
        """
