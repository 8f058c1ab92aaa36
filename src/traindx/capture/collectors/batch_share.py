"""How much of every output depends on the sample: its variance across the batch."""

from __future__ import annotations

from torch import Tensor, nn

from traindx.capture.collectors import Collector
from traindx.capture.models import TrackedModel
from traindx.capture.recorder import Recorder
from traindx.nested import first_tensor
from traindx.records import Point
from traindx.stats import batch_share

_DENSE, _EVERY, _APART = 4, 4, 16
"""Measured steps at the start that are all looked at; after them one of so many, and no two of them
closer than so many steps."""


class BatchShare(Collector):
    """`output.batch_share` of outputs whose first axis is known to be the batch.

    It must come after the collector of activations, which tells measurable outputs from others and
    a container's from its last child's.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._sequence_first: set[TrackedModel] = set()
        self._input_dim = 0

    def watches(self) -> bool:
        """Whether it is its turn."""
        return self._due()

    def forward_starts(self, model: TrackedModel, inputs: tuple[object, ...]) -> None:
        """Look whether a layer of the model takes sequences with time as the first axis."""
        if not self._due():
            return
        batch = first_tensor(inputs)
        self._input_dim = 0 if batch is None else batch.dim()
        self._sequence_first.discard(model)
        if any(vars(module).get("batch_first") is False for _, module in model.modules()):
            self._sequence_first.add(model)

    def output(
        self, model: TrackedModel, fqn: str, module: nn.Module, tensor: Tensor | None
    ) -> None:
        """Measure the first tensor of an output that was measured."""
        if tensor is None or not self.recorder.measured((model, fqn, Point.OUTPUT), tensor):
            return
        if self._has_batch_first(model, tensor):
            share = batch_share(tensor, self.recorder.step)
            self.recorder.scalar(model, fqn, "output.batch_share", share)

    def _due(self) -> bool:
        return self.recorder.due(dense=_DENSE, every=_EVERY, apart=_APART)

    def _has_batch_first(self, model: TrackedModel, tensor: Tensor) -> bool:
        """Whether its first axis is the batch: as long as the input's first axis, which is it.

        In a model with a sequence-first layer an input of two or three axes may begin with time,
        and so may an output of three.
        """
        if not tensor.dim() or tensor.shape[0] < 2 or tensor.shape[0] != model.batch_size:
            return False
        doubtful = model in self._sequence_first
        return not (doubtful and (self._input_dim <= 3 or tensor.dim() == 3))
