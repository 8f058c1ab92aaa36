"""What the measurements mean: evidence from a rule, findings, and the verdict on a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice

from traindx.records import RUN, Point, Site


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
        layers: Every module of the model that it concerns, by dotted path, at most `MOST_LAYERS`;
            empty if that is the site alone.
        profiles: Quantities that show it along the depth, at `step`.
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
    layers: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()


MOST_LAYERS = 200
"""Layers that evidence names at most: the page marks them one by one."""


def first_layers(fqns: Iterable[str]) -> tuple[str, ...]:
    """The first of these modules, each once, as `Evidence.layers` holds them."""
    return tuple(islice(dict.fromkeys(fqns), MOST_LAYERS))


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule's hits at one site, joined over steps.

    Attributes:
        id: Number within the verdict, from 1, most severe first; a warning that may be the cause
            of an error before it.
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
        return fingerprint(self.code, self.evidence.site)


def fingerprint(code: str, site: Site) -> str:
    """What tells a finding of one rule at one place, the same in every run."""
    text = "\0".join((code, site.model, site.fqn))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class NotEvaluated:
    """A rule that could not be judged, and why."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Context:
    """A circumstance in which some signs of illness are none.

    Attributes:
        name: `warmup`, `frozen`, `gan`, …
        reason: What it was inferred from, or who declared it.
        site: Where: the whole run, a model or an optimizer, or everything under a module.
        first_step: The first step at which it held.
        last_step: The last one, None if it has no end.
    """

    name: str
    reason: str
    site: Site = RUN
    first_step: int = 0
    last_step: int | None = None

    def covers(self, site: Site, step: int) -> bool:
        """Whether it holds at this site and step."""
        own = self.site
        begun = self.first_step <= step and (self.last_step is None or step <= self.last_step)
        inside = own.fqn in ("", site.fqn) or site.fqn.startswith(f"{own.fqn}.")
        return begun and (own == RUN or (own.model == site.model and inside))


@dataclass(frozen=True, slots=True)
class Silenced:
    """A finding that is not one here: a context explains it, or the user has said to ignore it."""

    code: str
    site: Site
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything the rules say of a run, including what they could not look at.

    Attributes:
        findings: Roots first, each symptom after its cause.
        evaluated: Codes of the rules that were judged.
        not_evaluated: Those that could not be, with the reason.
        silenced: What would be a finding but for a context, an `ignore` or a baseline.
        contexts: The circumstances that were inferred or declared.
    """

    findings: tuple[Finding, ...] = ()
    evaluated: tuple[str, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()
    silenced: tuple[Silenced, ...] = ()
    contexts: tuple[Context, ...] = ()

    def worst(self) -> Severity | None:
        """The worst severity among active findings."""
        active = [finding.severity for finding in self.findings if finding.active]
        return min(active, key=lambda severity: severity.rank, default=None)
