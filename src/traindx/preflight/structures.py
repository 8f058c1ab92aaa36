"""Tensors in whatever a model takes and returns: tuples, dicts, dataclasses, output classes."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

_DEPTH = 16
"""Containers in containers that are opened."""


def named_tensors(value: object) -> list[tuple[str, Tensor]]:
    """Every tensor with its path (`logits`, `0.hidden`), in order; a bare tensor has none."""
    return list(_walked(value, "", _DEPTH))


def tensors(value: object) -> list[Tensor]:
    """Every tensor, in order."""
    return [tensor for _, tensor in named_tensors(value)]


def mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """The same structure with every tensor changed; what holds none is the object itself.

    A packed sequence is changed as a whole where the change can do that (`change.packed`).
    """
    return _mapped(value, change, _DEPTH)


def once(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The change of a tensor, which gives the same result for the same tensor every time.

    What the model is given and what its loss differentiates by must stay one tensor.
    """
    done: dict[int, tuple[Tensor, Tensor]] = {}  # with the tensor, whose id must stay its own

    def changed(tensor: Tensor) -> Tensor:
        if id(tensor) not in done:
            done[id(tensor)] = tensor, change(tensor)
        return done[id(tensor)][1]

    return changed


def like(new: Tensor, old: Tensor) -> Tensor:
    """A detached tensor, which takes gradients if the one in whose place it is put does."""
    wanted = old.requires_grad and old.is_leaf and not new.requires_grad
    return new.requires_grad_() if wanted and new.is_leaf else new


def _walked(value: Any, path: str, depth: int) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield path, value
    elif depth:
        for name, part in _parts(value):
            yield from _walked(part, f"{path}.{name}" if path else name, depth - 1)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        known = cast("Mapping[Any, Any]", value)
        yield from ((str(key), part) for key, part in known.items())
    elif isinstance(value, tuple) and (fields := getattr(cast(Any, value), "_fields", None)):
        yield from zip(fields, cast("tuple[Any, ...]", value), strict=True)
    elif isinstance(value, list | tuple):
        elements = cast("list[Any] | tuple[Any, ...]", value)
        yield from ((str(i), part) for i, part in enumerate(elements))
    elif _is_record(value):
        yield from _attributes(value).items()


def _attributes(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", vars(value))


def holds_distribution(value: Any, depth: int = _DEPTH) -> bool:
    """Whether it holds a distribution: that keeps what it computes, and has more tensors then."""
    if _is_distribution(value):
        return True
    parts = () if isinstance(value, Tensor) or not depth else _parts(value)
    return any(holds_distribution(part, depth - 1) for _, part in parts)


def _is_distribution(value: object) -> bool:
    return type(value).__module__.startswith("torch.distributions.")


def _is_record(value: object) -> bool:
    """Whether its attributes are data: a dataclass, a mapping's like, or a distribution."""
    if isinstance(value, type) or not hasattr(value, "__dict__"):
        return False
    if _is_distribution(value):
        return True
    return dataclasses.is_dataclass(value) or (hasattr(value, "data") and hasattr(value, "keys"))


def _mapped(value: Any, change: Callable[[Tensor], Any], depth: int) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, PackedSequence) and hasattr(change, "packed"):
        return cast(Any, change).packed(value)
    if not depth or not any(True for _ in _walked(value, "", depth)):
        return value

    def inner(part: Any) -> Any:
        return _mapped(part, change, depth - 1)

    kind = cast(Any, type(value))
    if isinstance(value, tuple):
        parts = [inner(part) for part in cast("tuple[Any, ...]", value)]
        return kind._make(parts) if hasattr(kind, "_make") else kind(parts)  # or a packed sequence
    return _refilled(value, inner)


def _refilled(value: Any, inner: Callable[[Any], Any]) -> Any:
    """A shallow copy with its parts changed."""
    same = copy.copy(value)
    if isinstance(value, Mapping):
        for key, part in list(cast("Mapping[Any, Any]", value).items()):
            same[key] = inner(part)
    elif isinstance(value, list):
        same[:] = [inner(part) for part in cast("list[Any]", value)]
    else:
        for name, part in _attributes(value).items():
            object.__setattr__(same, name, inner(part))  # a frozen dataclass refuses its own
    return same
