"""The parts of a model, held weakly: to walk through all of them again and again costs much."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter

from torch import Tensor, nn

from traindx.capture.owners import own_parameters

own_children: Callable[[nn.Module], Mapping[str, nn.Module | None]] = attrgetter("_modules")
"""A module's own, as they are now: no copy."""


class Parts:
    """The modules of a model by fqn, and the names of their own parameters.

    Args:
        modules: All that a walk through the model has found, in its order.
    """

    def __init__(self, modules: Sequence[tuple[str, nn.Module]]) -> None:
        found = [module for _, module in modules]
        self._refs = [weakref.ref(module) for module in found]
        self._fqns = [fqn for fqn, _ in modules]
        self._params = [
            (weakref.ref(module), params) for module, params in _params(modules) if params
        ]
        self._registered = _registered(found) if all(map(_is_walked, found)) else None

    def modules(self) -> Iterator[tuple[str, nn.Module]]:
        """The living modules."""
        for fqn, ref in zip(self._fqns, self._refs, strict=True):
            if (module := ref()) is not None:
                yield fqn, module

    def parameters(self) -> list[tuple[str, Tensor]]:
        """The parameters that they hold now under these names, a shared one once."""
        return [
            (fqn, param)
            for ref, names in self._params
            if (module := ref()) is not None
            for held in (own_parameters(module),)
            for name, fqn in names
            if name in held and (param := held[name]) is not None
        ]

    def are_those_of(self, root: nn.Module) -> bool:
        """Whether a walk through a model would find the very same modules and names."""
        if self._registered is None or self._refs[0]() is not root:
            return False
        modules = [module for ref in self._refs if (module := ref()) is not None]
        return len(modules) == len(self._refs) and _registered(modules) == self._registered


def _params(
    modules: Sequence[tuple[str, nn.Module]],
) -> Iterator[tuple[nn.Module, list[tuple[str, str]]]]:
    """Name and fqn of each of a module's own parameters that no module before it holds."""
    seen: set[int] = set()
    for fqn, module in modules:
        params: list[tuple[str, str]] = []
        for name, param in own_parameters(module).items():
            if param is not None and id(param) not in seen:
                seen.add(id(param))
                params.append((name, f"{fqn}.{name}" if fqn else name))
        yield module, params


def _registered(modules: Sequence[nn.Module]) -> list[object]:
    """The names and ids of what each module holds itself, which is what a walk goes by."""
    found: list[object] = []
    for module in modules:
        children, params = own_children(module), own_parameters(module)
        if children:
            found += children
            found += map(id, children.values())
        found.append(len(children))
        if params:
            found += params
            found += map(id, params.values())
    return found


def _is_walked(module: nn.Module) -> bool:
    """Whether a walk through a module goes by what it holds, as that of a scripted one does not."""
    walked = type(module).named_modules is nn.Module.named_modules
    return walked and isinstance(own_children(module), dict)
