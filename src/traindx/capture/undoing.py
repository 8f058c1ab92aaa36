"""Putting back what a second call of a model changes outside of torch's tensors."""

from __future__ import annotations

import functools
import gc
import random
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

import torch

_CONTAINERS = (list, dict, set, deque, OrderedDict, defaultdict)


def random_state() -> Callable[[], None]:
    """Take note of every random state there is; calling the result puts it back."""
    undo: list[Callable[[], object]] = [
        functools.partial(random.setstate, random.getstate()),
        functools.partial(torch.set_rng_state, torch.get_rng_state()),
    ]
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    if numpy is not None:
        undo.append(functools.partial(numpy.set_state, numpy.get_state()))
    if torch.cuda.is_initialized():  # the state of a device's generator lies on the host
        states = [(it.set_state, it.get_state()) for it in torch.cuda.default_generators]
        undo += [functools.partial(set_state, state) for set_state, state in states]

    return functools.partial(_all, undo)


def generators_of_python() -> Callable[[], None]:
    """The same for every other generator of Python's and NumPy's that is alive."""
    numpy: Any = getattr(sys.modules.get("numpy"), "random", None)
    generator, state = (numpy.Generator, numpy.RandomState) if numpy is not None else (None, None)
    alive: list[Any] = gc.get_objects()
    kinds: Iterable[object] = map(type, alive)  # `isinstance` may ask the object: a user's proxy
    undo: list[Callable[[], object]] = []
    for found, kind in zip(alive, kinds, strict=True):
        if kind is random.Random:
            undo.append(functools.partial(found.setstate, found.getstate()))
        elif kind is generator:
            bits = found.bit_generator
            undo.append(functools.partial(setattr, bits, "state", bits.state))
        elif kind is state:
            undo.append(functools.partial(found.set_state, found.get_state()))
    return functools.partial(_all, undo)


def contents(values: Iterable[object]) -> Callable[[], None]:
    """Take note of what the plain containers among some values hold; the result puts it back."""
    plain = [value for value in values if type(value) in _CONTAINERS]
    undo = [functools.partial(_refill, value, list(_held_by(value))) for value in plain]
    return functools.partial(_all, undo)


def _held_by(container: Any) -> Iterable[Any]:
    return container.items() if hasattr(container, "items") else container


def _refill(container: Any, held: list[Any]) -> None:
    container.clear()
    (container.extend if hasattr(container, "extend") else container.update)(held)


def _all(undo: Iterable[Callable[[], object]]) -> None:
    for put_back in undo:
        put_back()
