"""The weights of a model's first layer, few enough to be stored and looked at as a picture."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from traindx.capture.models import TrackedModel
from traindx.capture.owners import own_parameters
from traindx.capture.transfer import Lists, Numbers, Part, Portion, TorchHost, Unread
from traindx.facts import Json
from traindx.records import Event, EventKind, Item, Site, Vector
from traindx.stats import is_freed

NUMBERS = 49_152
"""Weights that are stored at most, of 4 bytes each."""
_UNITS = 64
"""Filters or rows, the first ones."""
_CHANNELS = 8
"""Input channels of a filter that is no picture of 1 or 3 channels."""
_SIDE = 32
"""Extent of a filter; larger ones are averaged down."""
_COLUMNS = 384
"""Inputs of a row that is no picture."""
_MODELS = 4
"""Models of a training whose first layers are held."""
_MOST_HELD = 2**20
"""Elements of a weight that is held: 4 MB, which would else be freed with its model."""

Kind = Literal["filters", "channels", "signals", "rows", "matrix"]
_LAYERS = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)


class _Shown(NamedTuple):
    """Weights as pictures: [units, channels, height, width]."""

    kind: Kind
    weights: Tensor


def first_weights(
    model: str, modules: Iterable[tuple[str, nn.Module]], sample: Sequence[int], step: int
) -> list[Item]:
    """The weights of the first linear layer or convolution, and how to arrange them as pictures.

    Args:
        model: The model's name.
        modules: Its modules with their dotted paths, in the order they are called.
        sample: Extents of one sample of what the model is given; empty if that is unknown.
        step: Of the items.
    """
    for fqn, module in modules:
        if isinstance(module, _LAYERS):
            weight = plain_weight(module)
            site = Site(model, fqn)
            if weight is None:
                return []
            return Portion([_unread(site, type(module), weight, sample, step)], TorchHost()).items()
    return []


def plain_weight(module: nn.Module) -> Tensor | None:
    """The weight of a layer; None if it is computed, spread over processes, or not there.

    A parametrized weight is left alone: asking for it may change buffers (spectral normalization).
    """
    held = own_parameters(module)
    weight = held["weight"] if "weight" in held else None  # noqa: SIM401  # may have no `get`
    if type(weight) is not nn.Parameter:  # such as a DTensor, which other processes must join in
        return None
    dense = weight.layout is torch.strided and weight.is_floating_point()
    there = dense and weight.device.type != "meta" and weight.numel() and not is_freed(weight)
    return weight if there else None


def _is_in(stored: Tensor, module: nn.Module) -> bool:
    """Whether this is what a layer's weight is stored in."""
    held = own_parameters(module)
    weight = held["weight"] if "weight" in held else None  # noqa: SIM401  # as above
    if type(weight) is not nn.Parameter or weight.layout is not torch.strided:
        return False
    return weight.data_ptr() == stored.data_ptr()


class FirstWeights:
    """The first layers of models in training, held so that they can be looked at at the end.

    A model that a function has made is gone by then. What is held is what its weight is stored in,
    and no parameter.

    Args:
        wanted: Whether to hold any.
    """

    def __init__(self, *, wanted: bool = True) -> None:
        self._most = _MODELS if wanted else 0
        self._held: dict[str, _Held] = {}

    def note(self, model: TrackedModel) -> None:
        """A measured step of a model has ended."""
        held = self._held.get(model.name)
        if held is None and len(self._held) < self._most:
            held = self._found(model)
            if held is not None:
                self._held[model.name] = held
        if held is not None:
            held.hold()

    def _found(self, model: TrackedModel) -> _Held | None:
        named = [(fqn, m) for fqn, m in model.modules() if fqn in model.order or not model.order]
        named.sort(key=lambda pair: model.order.get(pair[0], 0))
        found = next(((fqn, m) for fqn, m in named if isinstance(m, _LAYERS)), None)
        return None if found is None else _Held(Site(model.name, found[0]), found[1], model.sample)

    def parts(self, step: int) -> list[Part]:
        """All of them as they are now."""
        return [part for held in self._held.values() for part in held.parts(step)]


class _Held:
    """The first layer of one model."""

    def __init__(self, site: Site, module: nn.Module, sample: Sequence[int]) -> None:
        self._site, self._kind, self._sample = site, type(module), sample
        self._module = weakref.ref(module)
        self._stored: Tensor | None = None

    def hold(self) -> None:
        module, stored = self._module(), self._stored
        if module is None or (stored is not None and _is_in(stored, module)):
            return
        weight = plain_weight(module)
        if weight is not None and weight.numel() <= _MOST_HELD:
            self._stored = weight.detach()  # the same storage, which optimizers write to

    def parts(self, step: int) -> list[Part]:
        self.hold()
        weight = self._stored
        if weight is None or is_freed(weight):
            return []
        return [_unread(self._site, self._kind, weight, self._sample, step)]


def _unread(
    site: Site, layer: type[nn.Module], weight: Tensor, sample: Sequence[int], step: int
) -> Unread:
    shown = _arranged(layer, weight.detach(), sample)
    height, width = shown.weights.shape[2:]
    if max(height, width) > _SIDE and shown.kind not in ("matrix", "signals"):
        size = min(height, _SIDE), min(width, _SIDE)
        small = nn.functional.adaptive_avg_pool2d(shown.weights[:_UNITS].float(), size)
        shown = _Shown(shown.kind, small)
    units = min(_UNITS, max(1, NUMBERS // math.prod(shown.weights.shape[1:])))
    kept = shown.weights[:units].float()
    detail: dict[str, Json] = {
        "probe": "first-weights",
        "kind": shown.kind,
        "layer": layer.__name__,
        "shape": [*kept.shape],
        "units": weight.shape[0],
        "inputs": weight.shape[1],
        "size": [height, width],
    }
    event = Event(step, EventKind.OBSERVED, site, detail)

    def items(_: Numbers, lists: Lists) -> list[Item]:
        return [Vector(step, "first_layer.weights", site, lists[0]), event]

    return Unread([], [kept.reshape(-1)], items)


def _arranged(layer: type[nn.Module], weight: Tensor, sample: Sequence[int]) -> _Shown:
    """The weights of some or all units as pictures."""
    if issubclass(layer, nn.Linear):
        return _rows(weight, sample)
    if issubclass(layer, nn.Conv1d):  # each filter is channels x positions
        return _Shown("signals", weight[:, None, :_UNITS, :_COLUMNS])
    if issubclass(layer, nn.Conv3d):
        weight = weight[:, :, weight.shape[2] // 2]
    if weight.shape[1] in (1, 3):
        return _Shown("filters", weight)
    return _Shown("channels", weight[:, :_CHANNELS])


def _rows(weight: Tensor, sample: Sequence[int]) -> _Shown:
    """The rows of a linear layer, as images where that is what it is given."""
    if len(sample) == 2:
        sample = (1, *sample)
    if len(sample) == 3 and math.prod(sample) == weight.shape[1]:
        if sample[0] in (1, 3):
            return _Shown("rows", weight.reshape(-1, *sample))
        if sample[2] in (1, 3):  # channels last
            return _Shown("rows", weight.reshape(-1, *sample).permute(0, 3, 1, 2))
    return _Shown("matrix", weight[:, None, None, :_COLUMNS])
