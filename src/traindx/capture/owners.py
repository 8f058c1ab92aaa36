"""Who owns whom: which module registered which parameter and which child, and under what name.

Filled while models are built, by torch's global registration hooks, with weak references to
modules only: `torch.utils.swap_tensors`, which conversions of a model may use, refuses tensors that
anybody refers to weakly. Copies and unpickled models do not register; they are known once they are
called.
"""

from __future__ import annotations

import inspect
import sys
import types
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import takewhile
from operator import attrgetter
from typing import Any, cast

from torch import Tensor, nn

_OURS_AND_THE_FRAMES = 3
"""References to a snapshot that only its frame, we and the call that counts them hold."""
_SPARE = 16
"""Parameters no longer held that a module may have before they are forgotten."""

own_parameters: Callable[[nn.Module], Mapping[str, Tensor | None]] = attrgetter("_parameters")
"""A module's own, as they are now: no copy. A scripted module's have no `get`."""


class Owners:
    """Weak knowledge of module ancestry and parameter ownership.

    Attributes:
        registrations: How often a module has registered anything.
    """

    def __init__(self) -> None:
        self.registrations = 0
        self._parents: dict[int, list[weakref.ref[nn.Module]]] = {}
        self._holders: dict[int, weakref.ref[nn.Module]] = {}
        self._held: dict[int, set[int]] = {}

    def child_registered(self, parent: nn.Module, _name: str, child: nn.Module | None) -> None:
        """Global module registration hook."""
        self.registrations += 1
        if child is None:
            return
        key = id(child)
        if key not in self._parents:
            self._parents[key] = []
            weakref.finalize(child, self._parents.pop, key, None).atexit = False
        others = [ref for ref in self._parents[key] if ref() is not None and ref() is not parent]
        self._parents[key] = [*others, weakref.ref(parent)]

    def param_registered(self, module: nn.Module, _name: str, param: Tensor | None) -> None:
        """Global parameter registration hook."""
        self.registrations += 1
        if param is None:
            return
        key = id(module)
        if key not in self._held:
            self._held[key] = set()
            weakref.finalize(module, self._forget, key).atexit = False
        held = self._held[key]
        if (
            len(held) > 2 * len(cast(Any, module)._parameters) + _SPARE
        ):  # it replaces them again and again
            old = held - {id(one) for one in module.parameters(recurse=False)}
            self._let_go(old, module)
            held -= old
        held.add(id(param))
        self._holders[id(param)] = weakref.ref(module)

    def _forget(self, key: int) -> None:
        """A module is gone."""
        self._let_go(self._held.pop(key, set()), None)

    def _let_go(self, params: set[int], module: nn.Module | None) -> None:
        """Forget who holds the tensors of these ids, unless another module has come to."""
        for key in params:
            ref = self._holders.get(key)
            holder = ref() if ref else None
            if ref is not None and (holder is None or holder is module):
                del self._holders[key]

    def learn(self, root: nn.Module) -> None:
        """Know the parts of a module that was built before anybody listened."""
        for module in root.modules():
            for name, child in module.named_children():
                self.child_registered(module, name, child)
            for name, param in module.named_parameters(recurse=False):
                self.param_registered(module, name, param)

    def top(self, module: nn.Module) -> nn.Module:
        """The highest living ancestor that still holds the module."""
        seen = {id(module)}
        while (parent := self._parent(module)) is not None:
            if id(parent) in seen:  # a module may hold its own ancestor
                break
            seen.add(id(parent))
            module = parent
        return module

    def _parent(self, module: nn.Module) -> nn.Module | None:
        for ref in reversed(self._parents.get(id(module), ())):  # the newest owner first
            parent = ref()
            if parent is not None and any(child is module for child in parent.children()):
                return parent
        return None

    def holder(self, param: Tensor) -> nn.Module | None:
        """The living module that holds a parameter now."""
        ref = self._holders.get(id(param))
        module = ref() if ref else None
        if module is not None:
            for own in own_parameters(module).values():
                if own is param:
                    return module
        return None


def name_in_frames(value: object, frame: types.FrameType | None) -> str | None:
    """The name of the variable that holds `value` in the nearest calling frame where it is unique.

    `self.net` of a plain class counts as `net`.
    """
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in ("torch", "traindx"):
            frame = frame.f_back
            continue
        variables = _variables(frame)
        names = [*_names(variables, value), *_names(_attributes(variables), value)]
        names = sorted({name for name in names if name != "self" and not name.startswith("_")})
        if len(names) == 1:
            return names[0]
        frame = frame.f_back
    return None


def variables_in_frames(frame: types.FrameType | None) -> Iterator[dict[str, object]]:
    """The variables of each calling frame of the user's, the nearest first."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in ("torch", "traindx"):
            yield _variables(frame)
        frame = frame.f_back


def _variables(frame: types.FrameType) -> dict[str, object]:
    """The variables of a frame, none of which is kept alive by having been looked at.

    Before Python 3.13 a function's frame keeps the snapshot it gives out until it returns, and with
    it each tensor in it. So it is emptied, unless the user's own `locals()` holds it as well.
    """
    snapshot = frame.f_locals
    code = frame.f_code
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return snapshot  # a module's own variables
    variables = dict(snapshot)
    if sys.version_info < (3, 13) and sys.getrefcount(snapshot) == _OURS_AND_THE_FRAMES:
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            snapshot.pop(name, None)
    return variables


def _attributes(variables: dict[str, object]) -> dict[str, object]:
    owner = variables.get("self")
    return {} if owner is None or isinstance(owner, nn.Module) else getattr(owner, "__dict__", {})


def _names(variables: dict[str, object], value: object) -> Iterator[str]:
    return (name for name, held in list(variables.items()) if held is value)


class Names:
    """Names of which each is given out once, however many there have been."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def new(self, name: str) -> str:
        """`name`, or with the next number that is free."""
        number = self._numbers.get(name, 1)
        free = name if number == 1 else f"{name}#{number}"
        while free in self._taken:
            number += 1
            free = f"{name}#{number}"
        self._numbers[name] = number
        self._taken.add(free)
        return free

    def give_back(self, name: str) -> None:
        """Nothing is called so after all."""
        self._taken.discard(name)
        self._numbers.clear()  # the numbers are looked for anew


def unique(name: str, taken: Container[str]) -> str:
    """`name`, or `name#2`, `name#3`, … when it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}#{number}"
    return free


def parent(fqn: str) -> str:
    """The dotted path of the module that a parameter or module is a part of."""
    return fqn.rpartition(".")[0]


def common(fqns: Iterable[str]) -> str:
    """What dotted paths begin with in common: the innermost module around modules."""
    paths = [fqn.split(".") for fqn in fqns]
    alike = takewhile(lambda parts: len({*parts}) == 1, zip(*paths, strict=False))
    return ".".join(parts[0] for parts in alike)
