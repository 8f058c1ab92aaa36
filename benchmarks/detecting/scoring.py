"""What a run's findings are worth: found, right cause first, place, how soon; false alarms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.detecting.programs import Program
from benchmarks.detecting.running import SEVERITIES, Outcome
from traindx.rules.catalog import catalog
from traindx.rules.causes import hints_first

SAME_CAUSE = (
    frozenset({"E003", "E018"}),  # a dropout that does not draw when it should, or does elsewhere
    frozenset({"E014", "E019"}),  # weights that did not arrive: by name, or in a foreign order
    frozenset({"E009", "E017"}),  # dropout before batch statistics: in training, and by a probe
    frozenset({"G003", "S012"}),  # no gradient: seen in training, and proven by a probe
    frozenset({"L002", "L003"}),  # a second softmax: L002 for class numbers, L003 for the rest
    frozenset({"N003", "S009"}),  # few numbers in a group: their noise, and their count by shapes
    frozenset({"N006", "S009"}),  # another axis than the features': by the graph, and by shapes
    frozenset({"O002", "O013"}),  # a rate too low: seen in training, and from the first batch
)
"""Codes that name one cause from two sources; either is right where one of them is expected."""

TOGETHER = "together"
VIEWS = ("run", "preflight", TOGETHER)

Finding = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Score:
    """How one run of a faulty program was judged.

    Attributes:
        found: Whether any finding names the cause.
        first: Whether the first root does.
        placed: Whether a finding that names the cause names the place; None if there is none.
        step: The first step at which the cause was named, 0 if before; None if it was not.
        lead: Code of the first root; empty if nothing was found.
    """

    found: bool
    first: bool
    placed: bool | None
    step: int | None
    lead: str


@dataclass(frozen=True, slots=True)
class Alarms:
    """What a healthy run was accused of.

    Attributes:
        errors: Codes of its errors.
        warnings: Codes of its warnings.
        infos: Codes of what is for information only, which is no alarm.
    """

    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    infos: tuple[str, ...] = ()


def right_codes(expected: str) -> frozenset[str]:
    """The codes that name the cause."""
    return next((codes for codes in SAME_CAUSE if expected in codes), frozenset({expected}))


def merged(parts: Iterable[Sequence[Finding]]) -> list[Finding]:
    """Findings of several views of one run in the order of one verdict: causes, the most severe.

    Across views one explains another as within one: by what the rule is explained by, if it is
    active and no milder; a milder one is told before it. Of two as severe what a probe has proven,
    an error, comes before what was measured in training, and what it has only forecast after that.
    """
    every = [(view, found) for view, part in enumerate(parts) for found in part]
    findings = [_with_causes(*one, every) for one in every]
    explained = [bool(found["caused_by"]) for found in findings]
    hints = [
        [] if explained[i] else [c for c in _hints(i, every) if not explained[c]]
        for i in range(len(every))
    ]

    def rank(i: int) -> tuple[object, ...]:
        found = findings[i]
        forecast = found["first_step"] < 0 and found["severity"] != "error"
        return bool(found["caused_by"]), found["status"] != "active", _rank(found), forecast

    order = sorted(range(len(findings)), key=rank)
    return [findings[i] for i in hints_first(order, hints)]


def _with_causes(view: int, symptom: Finding, every: Sequence[tuple[int, Finding]]) -> Finding:
    """A finding with what explains it in other views, by code."""
    others = [
        found["code"]
        for other, found in every
        if other != view and _may_cause(found, symptom) and _rank(found) <= _rank(symptom)
    ]
    return {**symptom, "caused_by": [*symptom["caused_by"], *others]}


def _hints(i: int, every: Sequence[tuple[int, Finding]]) -> list[int]:
    """Which warnings may be the cause of an error: in its own view those that stand before it."""
    view, symptom = every[i]
    return [
        c
        for c, (other, found) in enumerate(every)
        if (other != view or c < i)
        and _may_cause(found, symptom)
        and found["status"] == symptom["status"]
        and _rank(symptom) < _rank(found) < len(SEVERITIES) - 1
    ]


def _may_cause(cause: Finding, symptom: Finding) -> bool:
    rule = catalog().get(symptom["code"])
    known = rule is not None and cause["code"] in rule.explained_by
    return known and (cause["status"] == "active" or symptom["status"] != "active")


def _rank(found: Finding) -> int:
    return SEVERITIES.index(found["severity"])


def score(program: Program, findings: Sequence[Finding]) -> Score:
    """Judge what was found in a faulty program."""
    codes = right_codes(program.expects)
    right = [found for found in findings if found["code"] in codes]
    roots = [found for found in findings if not found["caused_by"] and found["status"] == "active"]
    placed = any(is_at(program.place, found) for found in right) if program.place else None
    return Score(
        found=bool(right),
        first=bool(roots) and roots[0]["code"] in codes,
        placed=placed,
        step=min((max(0, found["first_step"]) for found in right), default=None),
        lead=roots[0]["code"] if roots else "",
    )


def is_at(place: str, found: Finding) -> bool:
    """Whether a finding names a place: itself, among its layers, or as a parameter of it."""
    site = found["site"]
    return place in (site, site.rpartition(".")[0]) or place in found["layers"]


def alarms(findings: Iterable[Finding]) -> Alarms:
    """Judge what was found in a healthy program, cleared findings too: they were shown."""
    by: dict[str, list[str]] = defaultdict(list)
    for found in findings:
        by[found["severity"]].append(found["code"])
    return Alarms(tuple(by["error"]), tuple(by["warning"]), tuple(by["info"]))


@dataclass(frozen=True, slots=True)
class Judged:
    """A program's run as one view of it shows it."""

    program: Program
    seed: int
    twin: bool
    findings: tuple[Finding, ...]

    @property
    def is_faulty(self) -> bool:
        """Whether there is something to find."""
        return self.program.is_fault and not self.twin

    @property
    def score(self) -> Score:
        """Of a faulty run."""
        return score(self.program, self.findings)

    @property
    def alarms(self) -> Alarms:
        """Of a healthy run."""
        return alarms(self.findings)


def views(
    some: Iterable[Program], outcomes: Iterable[Outcome], view: str
) -> tuple[list[Judged], list[Outcome]]:
    """The runs as a view shows them, and the outcomes without a verdict.

    Together, a run is judged only where both of its modes were run; a mode without a verdict then
    adds nothing to the other.
    """
    known = {(program.name, program.digest): program for program in some}
    by_run: dict[tuple[str, str, int, bool], dict[str, Outcome]] = defaultdict(dict)
    for outcome in outcomes:
        if (outcome.program, outcome.digest) in known:
            by_run[outcome.key[:4]][outcome.mode] = outcome
    judged: list[Judged] = []
    failed: list[Outcome] = []
    for (name, digest, seed, twin), modes in by_run.items():
        wanted = [mode for mode in ("preflight", "run") if view in (mode, TOGETHER)]
        if any(mode not in modes for mode in wanted):
            continue
        parts = [modes[mode] for mode in wanted]
        failed += [part for part in parts if part.failure]
        findings = tuple(merged(part.findings for part in parts))
        judged.append(Judged(known[name, digest], seed, twin, findings))
    return judged, failed
