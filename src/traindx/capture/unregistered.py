"""What a model's attributes hold that is trained and not registered, or registered many times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import cast

from torch import Tensor, nn

from traindx.capture.models import TrackedModel
from traindx.records import Scalar, Site

_LOOKS = 4
"""Measured steps of a model in which its attributes are looked through."""
_OWN = ("_parameters", "_modules", "_buffers")
_CONTAINERS = (list, tuple, dict)
"""Containers that are looked into: to iterate over a class of the user's may do anything."""
_MOST = 512
"""Elements of a container that are looked at: a long list holds no layers."""


class Unregistered:
    """What is found in the first steps, when the parts of a model are complete."""

    def __init__(self) -> None:
        self._looks: dict[str, int] = {}
        self._seen: dict[int, int] = {}

    def looks_at(self, model: TrackedModel) -> bool:
        """Whether a model is still looked through."""
        return self._looks.get(model.name, 0) < _LOOKS

    def scalars(self, step: int, model: TrackedModel, held: set[int]) -> Iterator[Scalar]:
        """How many tensors of each attribute have a gradient though nothing is to train them.

        One counts from the second look on, if nobody has written to it since the first.

        Args:
            step: The step that has ended.
            model: A model in training.
            held: Ids of the parameters that an optimizer holds.
        """
        self._looks[model.name] = self._looks.get(model.name, 0) + 1
        known = held | {id(param) for _, param in model.parameters()}
        parts = {id(module) for _, module in model.modules()}
        for fqn, module in model.modules():
            if times := _repeated(module):
                yield Scalar(step, "model.repeated", float(times), Site(model.name, fqn))
            for name, value in [*vars(module).items()]:
                if name in _OWN:
                    continue
                strays = [t for t in _tensors(value, parts) if id(t) not in known]
                if count := sum(self._is_left(tensor) for tensor in strays):
                    site = Site(model.name, f"{fqn}.{name}" if fqn else name)
                    yield Scalar(step, "model.unregistered", float(count), site)

    def _is_left(self, tensor: Tensor) -> bool:
        """Whether it has a gradient, and is as it was at the last look."""
        if not (tensor.is_leaf and tensor.requires_grad and tensor.grad is not None):
            return False
        before, self._seen[id(tensor)] = self._seen.get(id(tensor)), tensor._version
        return before == tensor._version


def _repeated(module: nn.Module) -> int:
    """How often the same trained module stands in a list of modules; 0 if each stands once."""
    if type(module) not in (nn.ModuleList, nn.Sequential):
        return 0
    parts = cast("Iterable[nn.Module]", module)
    trained = (id(part) for part in parts if any(p.requires_grad for p in part.parameters()))
    most = max(Counter(trained).values(), default=0)
    return most if most > 1 else 0


def _tensors(value: object, parts: set[int], depth: int = 2) -> Iterator[Tensor]:
    """Tensors in an attribute: itself, in a module that is no part, or in containers.

    A module in eval mode is one that only helps, such as a network that compares pictures.
    """
    if isinstance(value, nn.Module):
        if id(value) not in parts and value.training:
            yield from value.parameters()
    elif isinstance(value, Tensor):
        yield value
    elif depth and type(value) in _CONTAINERS:
        held = cast("dict[object, object] | list[object] | tuple[object, ...]", value)
        elements = held.values() if isinstance(held, dict) else held
        for element in [*islice(elements, _MOST)]:
            yield from _tensors(element, parts, depth - 1)
