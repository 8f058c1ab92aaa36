"""The scalars given to backward: their values, and on the first steps what is behind them."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterable, Iterator
from typing import cast

import torch
from torch import Tensor

from traindx.capture import nodes
from traindx.capture.graph import Comparison, Graph
from traindx.capture.inventory import Inventory
from traindx.capture.models import Models, TrackedModel
from traindx.capture.signs import rewarded, signs
from traindx.capture.transfer import Lists, Numbers, Unread
from traindx.capture.ways import Ways
from traindx.facts import LossFacts, TensorFacts
from traindx.nested import holds_data
from traindx.records import Description, Item, Scalar, Site

_SCALED = 64
"""Scaled losses that are remembered until they are differentiated."""

Noted = tuple[int, str, float | Tensor]
"""A step, the names of the models a loss reaches, and the loss."""


class LossTape:
    """Losses by step and by the models they reach, noted without waiting for a device.

    A loss on the CPU is read at once. One on another device is kept as a scalar of its own and
    fetched later, with others.

    Attributes:
        unread: Step, models reached, and loss, in the order they came.
        scaling: Whether a GradScaler has been at work.
    """

    def __init__(self) -> None:
        self.unread: list[Noted] = []
        self.scaling = False
        self._settled = 0
        self._scaled: dict[tuple[int, int], Tensor] = {}

    def scaled_by(self, loss: object, scaler: object) -> None:
        """Remember the scale a GradScaler has multiplied a loss by."""
        scale = getattr(scaler, "_scale", None)  # a disabled scaler has none
        if isinstance(loss, Tensor) and isinstance(scale, Tensor):
            self.scaling = True
            if (key := nodes.identity(loss)) is None:
                return
            while len(self._scaled) >= _SCALED:  # the oldest first
                del self._scaled[next(iter(self._scaled))]
            self._scaled[key] = scale.detach().clone()

    def scale_of(self, loss: Tensor) -> float | Tensor | None:
        """The scale in a loss; None if it is not scaled."""
        if not self._scaled:
            return None
        key = nodes.identity(loss)
        scale = self._scaled.get(key) if key else None
        if scale is None:
            return None
        return float(scale) if scale.is_cpu else scale

    def note(self, step: int, models: str, loss: Tensor, scale: float | Tensor | None) -> None:
        """Note a loss, multiplied by `scale`, that reaches the models named."""
        value = loss.detach()
        if isinstance(scale, Tensor):  # a scaler keeps it on the device of the first loss it saw
            scale = scale.to(value.device, non_blocking=True)
        value = value if scale is None else value / scale
        kept = float(value) if value.is_cpu else value.clone()
        self.unread.append((step, models, kept))

    def turn_ended(self) -> None:
        """What has been noted so far belongs to the steps it was noted at."""
        self._settled = len(self.unread)

    def belongs_to(self, step: int) -> None:
        """What has been noted since the last turn belongs to a later step, as it turns out."""
        late = self.unread[self._settled :]
        self.unread[self._settled :] = [(step, models, value) for _, models, value in late]

    def take(self, step: int, *, fetch: bool = True) -> list[Unread]:
        """The losses of each step up to `step`, for the host to read and take the mean of.

        Args:
            step: The last step to tell of.
            fetch: Whether to take those on a device, too; with any of them, all wait otherwise.
        """
        complete = [entry for entry in self.unread if entry[0] <= step]
        if not fetch and any(isinstance(value, Tensor) for _, _, value in complete):
            return []
        self.unread = [entry for entry in self.unread if entry[0] > step]
        self._settled = min(self._settled, len(self.unread))
        keys = [(at, models) for at, models, _ in complete]

        def items(numbers: Numbers, _lists: Lists) -> Iterator[Scalar]:
            groups: dict[tuple[int, str], list[float]] = {}
            for key, number in zip(keys, numbers, strict=True):
                groups.setdefault(key, []).append(number)
            for (at, models), group in groups.items():
                yield Scalar(at, "loss", sum(group) / len(group), Site(models))

        return [Unread([value for _, _, value in complete], [], items)] if complete else []


class LossReader:
    """Reads the graph behind the losses of the first steps: what was compared, what is reached."""

    def __init__(self, models: Models, inventory: Inventory) -> None:
        self._models = models
        self._inventory = inventory
        self._outputs: dict[TrackedModel, tuple[int, Tensor]] = {}
        self._compared: dict[str, tuple[str, Comparison]] = {}
        self._norms: list[Unread] = []
        self._signs: list[tuple[Site, str, Tensor]] = []

    def keep(self, model: TrackedModel, output: Tensor | None) -> None:
        """Keep a model's last output until backward: autograd does not save a linear layer's.

        Without its graph, and so without the model, should there be no backward.
        """
        if output is not None and type(output) is Tensor and (key := nodes.identity(output)):
            self._outputs[model] = key[1], output.detach()

    def drop(self, model: TrackedModel) -> None:
        """Let go of a model's last output: another one is on its way."""
        self._outputs.pop(model, None)

    def read(self, loss: Tensor, frame: types.FrameType | None) -> None:
        """Walk the graph of one loss."""
        graph = Graph(loss)
        self._models.reached(graph.leaves, frame)
        reached = self._note_ways(graph.ways())
        comparison = graph.comparison(dict(self._outputs.values()))
        if comparison is not None and reached:
            self._compared[names(reached)] = graph.operation, comparison
        if reached:
            self._note_signs(loss, names(reached), frame)

    def _note_signs(self, loss: Tensor, models: str, frame: types.FrameType | None) -> None:
        """Note with which sign the loss counts what it is made of."""
        found = signs(loss)
        if found.losses:
            factor = torch.stack([each.reshape(-1)[0] for each in found.losses]).max()
            self._signs.append((Site(models), "loss.factor", factor))
        for reward in rewarded(found.likelihoods, frame):
            self._signs.append((Site(models, reward.variable), "loss.rewarded", reward.correlation))

    def _note_ways(self, ways: Ways) -> list[TrackedModel]:
        """Note what lies on the ways to each parameter; the models that have any of them."""
        at_once = all(norm.is_cpu for norm in ways.norms)
        paths = ways.facts([float(norm) for norm in ways.norms] if at_once else ())
        reached = {
            model: own
            for model in self._models
            if (own := {fqn: id(p) for fqn, p in model.parameters() if id(p) in paths})
        }
        for model, own in reached.items():
            model.paths.update({fqn: paths[leaf] for fqn, leaf in own.items()})
        if not at_once:
            self._norms.append(Unread([*ways.norms], [], self._late(ways, reached)))
        return [*reached]

    def _late(
        self, ways: Ways, reached: dict[TrackedModel, dict[str, int]]
    ) -> Callable[[Numbers, Lists], list[Item]]:
        def items(norms: Numbers, _lists: Lists) -> list[Item]:
            paths = ways.facts(norms)
            for model, own in reached.items():
                model.paths.update({fqn: paths[leaf] for fqn, leaf in own.items()})
                self._inventory.forget(model)
            return []

        return items

    def take(self, step: int) -> list[Unread]:
        """What went into the losses since it was last asked for, to be told at a step."""
        if not (self._compared or self._norms or self._signs):
            return []
        compared, self._compared = self._compared, {}
        norms, self._norms = self._norms, []
        found, self._signs = self._signs, []

        def of_signs(numbers: Numbers, _lists: Lists) -> Iterator[Scalar]:
            for (site, quantity, _), number in zip(found, numbers, strict=True):
                if math.isfinite(number):
                    yield Scalar(step, quantity, number, site)

        def told(models: str, operation: str, comparison: Comparison) -> Unread:
            def items(prediction: TensorFacts | None, target: TensorFacts | None) -> list[Item]:
                facts = LossFacts(models, operation, comparison.loss, prediction, target)
                return [Description(step, facts)] if self._inventory.is_news(facts) else []

            return comparison.unread(items)

        parts = [*norms, *(told(models, *both) for models, both in compared.items())]
        if found:
            parts.append(Unread([number for *_, number in found], [], of_signs))
        return parts

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

    def backward_starts(
        self, tensors: object, frame: types.FrameType | None, walk: bool
    ) -> Tensor | None:
        """Take the loss among `tensors`, and walk the graph behind it."""
        loss = self._loss = find_loss(tensors)
        self.scale = None if loss is None else self.tape.scale_of(loss)
        if walk and loss is not None:
            self.reader.read(loss, frame)
        self.reader.release()
        only = self._models.only()  # with one model there is nothing to tell apart
        self._only = [] if only is None else [only]
        self._marks = {} if only else {model: model.mark() for model in self._models}
        return loss

    def backward_ended(self, step: int) -> list[TrackedModel]:
        """Note the loss; the models whose gradients the pass has changed."""
        marks = [(m, mark) for m, mark in self._marks.items() if not m.is_elsewhere]
        reached = self._only or [m for m, mark in marks if m.mark() != mark]
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
        return tensors if is_loss(tensors) else None
    if not isinstance(tensors, list | tuple):
        return None  # an iterator is torch's to consume
    given = cast("Iterable[object]", tensors)
    for tensor in given:
        if isinstance(tensor, Tensor) and is_loss(tensor):
            return tensor
    return None


def is_loss(tensor: Tensor) -> bool:
    """Whether it is one real number that can be read."""
    if tensor.grad_fn is None or tensor.is_nested or not tensor.is_floating_point():
        return False
    return tensor.numel() == 1 and holds_data(tensor)


def names(models: Iterable[TrackedModel]) -> str:
    """How a loss that reaches several models is named."""
    return "+".join(model.name for model in models)
