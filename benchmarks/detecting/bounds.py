"""Exact bounds of a rate from counts (Clopper & Pearson, Biometrika 1934)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something happened.

    Attributes:
        hits: Times it did.
        total: Times it could have.
    """

    hits: int
    total: int

    @property
    def value(self) -> float:
        """The share; NaN of nothing."""
        return self.hits / self.total if self.total else float("nan")

    def bounds(self, confidence: float = 0.95) -> tuple[float, float]:
        """The exact two-sided interval: each tail has half of what is left of the confidence."""
        tail = (1 - confidence) / 2
        return self.lowest(1 - tail), self.highest(1 - tail)

    def highest(self, confidence: float = 0.95) -> float:
        """The exact one-sided upper bound: 1 - 0.05 ** (1 / n) if it never happened."""
        from scipy.stats import beta

        if self.hits == self.total:
            return 1.0
        return float(beta.ppf(confidence, self.hits + 1, self.total - self.hits))

    def lowest(self, confidence: float = 0.95) -> float:
        """The exact one-sided lower bound."""
        from scipy.stats import beta

        if self.hits == 0:
            return 0.0
        return float(beta.ppf(1 - confidence, self.hits, self.total - self.hits + 1))

    def __str__(self) -> str:
        if not self.total:
            return "-"
        low, high = self.bounds()
        return f"{self.hits}/{self.total} = {self.value:.0%} ({low:.0%} to {high:.0%})"


def rate(outcomes: list[bool]) -> Rate:
    """How many are true."""
    return Rate(sum(outcomes), len(outcomes))
