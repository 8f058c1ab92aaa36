"""How a difference is named: a short name for programs, and a sentence for people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Attributes:
        name: Its short name, as `running-variance`.
        text: What it is, as `running variance biased, not unbiased`.
    """

    name: str
    text: str


def number(value: float | None) -> str:
    """A number as short as it is."""
    return "None" if value is None else f"{value:.6g}"
