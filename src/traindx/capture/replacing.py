"""Replacing an attribute of torch, and putting it back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> Callable[[], None]:
    """Replace an attribute by what `make` builds around it; returns what puts it back."""
    own = name in vars(owner)
    original = getattr(owner, name)
    replacement = make(original)
    setattr(owner, name, replacement)

    def undo() -> None:
        if getattr(owner, name) is not replacement:
            return  # somebody has replaced it since; theirs calls ours, which calls the original
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)

    return undo


def then(tell: Callable[[Any, Any, Any], None]) -> Callable[[Any], Any]:
    """A replacement that calls the original, then tells its arguments and its result."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not torch.compiler.is_compiling():
                tell(args, kwargs, result)
            return result

        return call

    return make
