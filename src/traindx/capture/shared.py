"""The names of what was measured, which round after round are the same."""

from __future__ import annotations

from typing import Generic, TypeVar

from traindx.capture.models import TrackedModel
from traindx.records import Site

T = TypeVar("T")
_KINDS = 8
"""Of how many kinds of rounds it is remembered what they measured: some things have turns."""


class Shared(Generic[T]):
    """What was measured where, in the same tuple for all rounds that measured alike."""

    def __init__(self) -> None:
        self._known: list[tuple[list[tuple[TrackedModel, str, T]], tuple[tuple[T, Site], ...]]] = []

    def of(self, keys: list[tuple[TrackedModel, str, T]]) -> tuple[tuple[T, Site], ...]:
        """What these places are to readers."""
        for known, named in self._known:
            if known == keys:
                return named
        named = tuple((what, Site(model.name, fqn)) for model, fqn, what in keys)
        self._known = [(keys, named), *self._known[: _KINDS - 1]]
        return named
