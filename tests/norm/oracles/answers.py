"""An oracle's answer beside ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Answer:
    """One vector.

    Attributes:
        source: Whose it is.
        name: Its name there.
        error: The largest absolute deviation of ours.
        excess: The largest deviation over what its own tolerance allows; at most 1 passes.
    """

    source: str
    name: str
    error: float
    excess: float


def compared(
    source: str, name: str, pairs: Iterable[tuple[Any, Any]], *, rtol: float, atol: float
) -> Answer:
    """Ours beside theirs, where what is not a number in theirs must be none in ours."""
    error = excess = 0.0
    for ours, theirs in pairs:
        a, b = np.asarray(ours, float), np.asarray(theirs, float)
        if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return Answer(source, name, np.inf, np.inf)
        apart = np.abs(a - b)[np.isfinite(b)]
        if apart.size:
            allowed = atol + rtol * np.abs(b[np.isfinite(b)])
            error = max(error, float(apart.max()))
            excess = max(excess, float((apart / allowed).max()))
    return Answer(source, name, error, excess)


def refused(source: str, name: str, theirs: Any) -> Answer:
    """We refuse what has no finite answer; theirs must have none then."""
    error = np.inf if np.all(np.isfinite(np.asarray(theirs, float))) else 0.0
    return Answer(source, name, error, error)


def table(answers: Iterable[Answer]) -> list[str]:
    """A line a source: how many vectors, how many fail, and the worst error."""
    by_source: dict[str, list[Answer]] = {}
    for answer in answers:
        by_source.setdefault(answer.source, []).append(answer)
    return [
        f"{source}: {len(found)} vectors, {sum(a.excess > 1 for a in found)} failed, "
        f"worst error {max(a.error for a in found):.2g} "
        f"({max(found, key=lambda a: a.error).name})"
        for source, found in sorted(by_source.items())
    ]
