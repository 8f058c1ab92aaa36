"""Which finding explains which, and the order in which findings are told.

A finding explains another if its code is named in the other's `explained_by` and it lies where it
can have caused it: in a model that both concern, upstream of it, begun no later, and no milder. A
milder one is only told before the other: both are roots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from traindx.findings import Finding, Severity
from traindx.records import Site
from traindx.rules.order import Places

SLACK = 100
"""Steps by which a cause may be seen after its symptom has been: rules take time to be sure."""

_ON_THE_WAY = "FNPS"
"""Families whose faults change what passes a layer, and so the gradient that comes back through."""


def arrange(
    findings: Sequence[Finding], explained_by: Mapping[str, tuple[str, ...]], places: Places
) -> tuple[Finding, ...]:
    """Number the findings, name the causes of each, and put the roots first.

    Roots come before the findings they explain, active ones before cleared ones, then the more
    severe, then the more upstream, then the earlier. A warning that may be the cause of an error
    comes right before it.

    Args:
        findings: Unnumbered findings.
        explained_by: For each code, the codes whose finding explains one of it.
        places: Where their sites stand.
    """
    causes = [_before(it, findings, explained_by, explains, places) for it in findings]
    hints = [
        []
        if causes[i]
        else [h for h in _before(it, findings, explained_by, hints_at, places) if not causes[h]]
        for i, it in enumerate(findings)
    ]

    def rank(i: int) -> tuple[object, ...]:
        it = findings[i]
        place = places.of(it.evidence.site)
        return bool(causes[i]), not it.active, it.severity.rank, place, it.first_step, it.code

    order = hints_first(sorted(range(len(findings)), key=rank), hints)
    ids = {i: number for number, i in enumerate(order, start=1)}
    return tuple(
        replace(findings[i], id=ids[i], caused_by=tuple(sorted(ids[c] for c in causes[i])))
        for i in order
    )


def _before(
    symptom: Finding,
    findings: Sequence[Finding],
    explained_by: Mapping[str, tuple[str, ...]],
    relation: Callable[[Finding, Finding, Places], bool],
    places: Places,
) -> list[int]:
    """Which findings stand in a relation to one of a code that theirs explains."""
    codes = explained_by.get(symptom.code, ())
    return [i for i, f in enumerate(findings) if f.code in codes and relation(f, symptom, places)]


def hints_first(order: Sequence[int], hints: Sequence[Sequence[int]]) -> list[int]:
    """An order in which each hint comes right before the first of what it hints at.

    Args:
        order: Of all findings.
        hints: For each finding, the milder ones that may be its cause.
    """
    told = list(order)
    for cause in order:
        if symptoms := [i for i in told if cause in hints[i]]:
            told.remove(cause)
            told.insert(told.index(symptoms[0]), cause)
    return told


def hints_at(cause: Finding, symptom: Finding, places: Places) -> bool:
    """Whether a warning lies where and when it can have caused an error, which it does not hide."""
    milder = symptom.severity.rank < cause.severity.rank < Severity.INFO.rank
    return milder and cause.active == symptom.active and _precedes(cause, symptom, places)


def explains(cause: Finding, symptom: Finding, places: Places) -> bool:
    """Whether one finding lies where and when it can have caused another, and is no milder.

    A warning never hides an error.
    """
    return cause.severity.rank <= symptom.severity.rank and _precedes(cause, symptom, places)


def _precedes(cause: Finding, symptom: Finding, places: Places) -> bool:
    """Whether one finding lies where and when it can have caused another.

    What has cleared is no cause of what is still there.
    """
    return (
        cause is not symptom
        and (cause.active or not symptom.active)
        and _in_time(cause, symptom)
        and _upstream(cause, symptom, places)
    )


def _in_time(cause: Finding, symptom: Finding) -> bool:
    """Whether the cause was there when the symptom began.

    Some rules ask for 50 steps before they speak, and late in a run measured steps lie far apart:
    it may have been seen later by `SLACK` steps, and by as many as the symptom took to begin.
    """
    return cause.first_step <= 2 * max(symptom.first_step, 0) + SLACK


def _upstream(cause: Finding, symptom: Finding, places: Places) -> bool:
    """Whether the way from one site to the other goes forward.

    A gradient has passed all layers behind its own: of what is wrong with it, a fault of the
    forward signal or of a normalization anywhere in the model lies upstream. And what is wrong with
    a model as a whole can come from any part of it.
    """
    here, there = cause.evidence.site, symptom.evidence.site
    if not places.meet(here, there):
        return False
    backward = cause.code[0] in _ON_THE_WAY and symptom.code.startswith("G")
    whole = backward or not there.fqn or not places.in_model(there)
    return whole or places.of(here) <= max(places.of(there), places.of(_lost_at(symptom)))


def _lost_at(symptom: Finding) -> Site:
    """Where a symptom shows first: F001 names the layer that still sees, and loses it behind."""
    evidence = symptom.evidence
    behind = evidence.layers[:1] if symptom.code == "F001" else ()
    return Site(evidence.site.model, behind[0]) if behind else evidence.site
