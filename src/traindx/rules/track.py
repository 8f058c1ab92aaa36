"""Hysteresis: one rule at one site over time, so that a finding neither flickers nor lingers."""

from __future__ import annotations

from dataclasses import dataclass

from traindx.findings import Evidence, Finding
from traindx.rules.rule import Rule


@dataclass(slots=True)
class Track:
    """The hits and misses of one rule at one site.

    It takes `rule.hits` hits in a row to become a finding, and as many misses in a row to clear
    it. What was measured counts, not how often it was judged: a hit that shows no newer step than
    the last one (its model trains no more) and a second miss at one step change nothing.

    Attributes:
        rule: The rule.
        evidence: The last hit.
        first_step: Step of the first hit of the row that made it a finding.
        count: Hits since then.
        found: Whether it ever became a finding.
        active: Whether it is one now.
    """

    rule: Rule
    evidence: Evidence
    first_step: int = 0
    count: int = 0
    found: bool = False
    active: bool = False
    _hits_in_a_row: int = 0
    _misses_in_a_row: int = 0
    _missed_at: int | None = None

    def hit(self, evidence: Evidence) -> None:
        """Take a hit."""
        if not self._hits_in_a_row and not self.found:
            self.first_step, self.count = evidence.step, 0
        if not self._hits_in_a_row or evidence.step > self.evidence.step:
            self._hits_in_a_row += 1
            self.count += 1
        self.evidence = evidence
        self._misses_in_a_row = 0
        # What was seen before training does not come again, nor does it flicker.
        if self._hits_in_a_row >= self.rule.hits or evidence.step < 0:
            self.found = self.active = True

    def miss(self, step: int) -> None:
        """Take a miss, judged when `step` was the last one measured."""
        if step == self._missed_at:
            return
        self._missed_at = step
        self._hits_in_a_row = 0
        self._misses_in_a_row += 1
        if self._misses_in_a_row >= self.rule.hits:
            self.active = False

    def finding(self, thresholds: dict[str, float]) -> Finding:
        """It as a finding, not yet numbered."""
        return Finding(
            id=0,
            code=self.rule.code,
            name=self.rule.name,
            severity=self.evidence.severity or self.rule.severity,
            active=self.active,
            evidence=self.evidence,
            first_step=self.first_step,
            last_step=self.evidence.step,
            count=self.count,
            thresholds=thresholds,
            remedies=self.rule.remedies,
        )
