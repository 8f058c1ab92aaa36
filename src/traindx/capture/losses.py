"""The scalars given to backward: their values, and on the first steps what is behind them."""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterable
from typing import cast

from torch import Tensor

from traindx.capture.graph import Graph
from traindx.capture.inventory import Inventory
from traindx.capture.models import Models, TrackedModel
from traindx.capture.nested import holds_data
from traindx.capture.recorder import to_host
from traindx.facts import LossFacts
from traindx.records import Scalar, Site


class LossTape:
    """Losses by step and by the models they reach, noted without waiting for a device.

    A loss on the CPU is read at once. One on another device is kept as a scalar of its own and
    read with the next measured step's copy.
    """

    def __init__(self) -> None:
        self._unread: list[tuple[int, str, float | Tensor]] = []
        self._settled = 0
        self._scaled: dict[int, tuple[weakref.ref[Tensor], Tensor]] = {}

    def scaled_by(self, loss: object, scaler: object) -> None:
        """Remember the scale a GradScaler has multiplied a loss by."""
        scale = getattr(scaler, "_scale", None)  # a disabled scaler has none
        if isinstance(loss, Tensor) and isinstance(scale, Tensor):
            alive = {key: kept for key, kept in self._scaled.items() if kept[0]() is not None}
            self._scaled = {**alive, id(loss): (weakref.ref(loss), scale.detach().clone())}

    def scale_of(self, loss: Tensor) -> float | Tensor | None:
        """The scale in a loss; None if it is not scaled."""
        if not self._scaled:
            return None
        ref, scale = self._scaled.get(id(loss), (None, None))
        if ref is None or scale is None or ref() is not loss:
            return None
        return float(scale) if scale.device.type == "cpu" else scale

    def note(self, step: int, models: str, loss: Tensor, scale: float | Tensor | None) -> None:
        """Note a loss, multiplied by `scale`, that reaches the models named."""
        value = loss.detach()
        value = value if scale is None else value / scale
        kept = float(value) if value.device.type == "cpu" else value.clone()
        self._unread.append((step, models, kept))

    def turn_ended(self) -> None:
        """What has been noted so far belongs to the steps it was noted at."""
        self._settled = len(self._unread)

    def belongs_to(self, step: int) -> None:
        """What has been noted since the last turn belongs to a later step, as it turns out."""
        late = self._unread[self._settled :]
        self._unread[self._settled :] = [(step, models, value) for _, models, value in late]

    def read(self, step: int, *, wait: bool) -> list[Scalar]:
        """The mean loss of each step up to `step`, unless one is on a device and may not wait."""
        complete = [entry for entry in self._unread if entry[0] <= step]
        if not wait and any(isinstance(value, Tensor) for _, _, value in complete):
            return []
        self._unread = [entry for entry in self._unread if entry[0] > step]
        values = to_host([value for _, _, value in complete])
        groups: dict[tuple[int, str], list[float]] = {}
        for (at, models, _), value in zip(complete, values, strict=True):
            groups.setdefault((at, models), []).append(value)
        return [
            Scalar(at, "loss", sum(group) / len(group), Site(models))
            for (at, models), group in groups.items()
        ]


class LossReader:
    """Reads the graph behind the losses of the first steps: what was compared, what is reached."""

    def __init__(self, models: Models, inventory: Inventory) -> None:
        self._models = models
        self._inventory = inventory
        self._outputs: dict[TrackedModel, Tensor] = {}

    def keep(self, model: TrackedModel, output: Tensor | None) -> None:
        """Keep a model's last output until backward: autograd does not save a linear layer's."""
        if output is not None:
            self._outputs[model] = output

    def drop(self, model: TrackedModel) -> None:
        """Let go of a model's last output, with the graph behind it: another one is on its way."""
        self._outputs.pop(model, None)

    def read(self, loss: Tensor, frame: types.FrameType | None) -> None:
        """Walk the graph of one loss."""
        graph = Graph(loss)
        paths = graph.paths()
        self._models.reached(graph.leaves, frame)
        reached: list[TrackedModel] = []
        for model in self._models:
            own = {fqn: paths[id(p)] for fqn, p in model.parameters() if id(p) in paths}
            model.paths.update(own)
            reached.extend([model] if own else [])
        comparison = graph.comparison([*self._outputs.values()])
        if comparison is not None and reached:
            self._inventory.add_loss(
                LossFacts(
                    names(reached),
                    graph.operation,
                    comparison.loss,
                    comparison.prediction,
                    comparison.target,
                )
            )

    def release(self) -> None:
        """Let go of the outputs."""
        self._outputs = {}


class Losses:
    """The backward pass going on: its loss, the scale of it, and the models it reaches.

    Attributes:
        tape: The losses of the run.
        reader: What is behind them.
        scale: What a GradScaler multiplied the loss going on by; None if nothing.
    """

    def __init__(self, models: Models, inventory: Inventory) -> None:
        self.tape = LossTape()
        self.reader = LossReader(models, inventory)
        self.scale: float | Tensor | None = None
        self._models = models
        self._loss: Tensor | None = None
        self._only: list[TrackedModel] = []
        self._marks: dict[TrackedModel, object] = {}

    def backward_starts(self, tensors: object, frame: types.FrameType | None, walk: bool) -> None:
        """Take the loss among `tensors`, and walk the graph behind it."""
        loss = self._loss = find_loss(tensors)
        self.scale = None if loss is None else self.tape.scale_of(loss)
        if walk and loss is not None:
            self.reader.read(loss, frame)
        self.reader.release()
        only = self._models.only()  # with one model there is nothing to tell apart
        self._only = [] if only is None else [only]
        self._marks = {} if only else {model: model.mark() for model in self._models}

    def backward_ended(self, step: int) -> list[TrackedModel]:
        """Note the loss; the models whose gradients the pass has changed."""
        reached = self._only or [m for m, mark in self._marks.items() if m.mark() != mark]
        if self._loss is not None and (reached or not self._models.given):
            self.tape.note(step, names(reached), self._loss, self.scale)
        return reached

    def forget(self) -> None:
        """The pass is over."""
        self._loss = self.scale = None
        self._only, self._marks = [], {}


def find_loss(tensors: object) -> Tensor | None:
    """The scalar with a graph among what was given to backward."""
    if isinstance(tensors, Tensor):
        return tensors if _is_loss(tensors) else None
    if not isinstance(tensors, list | tuple):
        return None  # an iterator is torch's to consume
    given = cast("Iterable[object]", tensors)
    for tensor in given:
        if isinstance(tensor, Tensor) and _is_loss(tensor):
            return tensor
    return None


def _is_loss(tensor: Tensor) -> bool:
    """Whether it is one real number that can be read."""
    if tensor.grad_fn is None or tensor.is_nested or not tensor.is_floating_point():
        return False
    return tensor.numel() == 1 and holds_data(tensor)


def names(models: Iterable[TrackedModel]) -> str:
    """How a loss that reaches several models is named."""
    return "+".join(model.name for model in models)
