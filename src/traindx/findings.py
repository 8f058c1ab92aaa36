"""What the measurements mean: evidence from a rule, findings, and the verdict on a run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Enum

from traindx.records import Point, Site


class Severity(str, Enum):
    """How bad: an error stops learning, a warning costs, an info is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def __str__(self) -> str:
        return self.value

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One hit of a rule at one site and step.

    Attributes:
        site: Where.
        step: When.
        message: What was seen, with its number, in one sentence.
        numbers: The numbers behind it.
        point: What of the site, where one was measured.
        cause: Why it happens here, in one sentence.
        fix: What to change, as a user can paste it.
        excluded: Other explanations that were checked and ruled out.
        series: Quantities that show it, for the evidence plot.
        severity: Overrides the rule's own.
    """

    site: Site
    step: int
    message: str
    numbers: dict[str, float]
    point: Point | None = None
    cause: str = ""
    fix: str = ""
    excluded: tuple[str, ...] = ()
    series: tuple[str, ...] = ()
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule's hits at one site, joined over steps.

    Attributes:
        id: Number within the verdict, from 1, most severe first.
        code: The rule's code.
        name: The rule's name.
        severity: Error, warning or info.
        active: False once the rule has stopped seeing it.
        evidence: The last hit.
        first_step: Step of the first hit.
        last_step: Step of the last hit.
        count: Measured steps with a hit.
        thresholds: The rule's options as used.
        caused_by: Ids of the findings that explain this one.
        remedies: Names of remedies that answer it.
    """

    id: int
    code: str
    name: str
    severity: Severity
    active: bool
    evidence: Evidence
    first_step: int
    last_step: int
    count: int
    thresholds: dict[str, float] = field(default_factory=dict[str, float])
    caused_by: tuple[int, ...] = ()
    remedies: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """The same for the same rule at the same place in every run."""
        site = self.evidence.site
        text = "\0".join((self.code, site.model, site.fqn))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """A rule that could not be judged, and why."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything the rules say of a run, including what they could not look at."""

    findings: tuple[Finding, ...] = ()
    evaluated: tuple[str, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()

    def worst(self) -> Severity | None:
        """The worst severity among active findings."""
        active = [finding.severity for finding in self.findings if finding.active]
        return min(active, key=lambda severity: severity.rank, default=None)
