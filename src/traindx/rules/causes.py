"""Which finding explains which, and the order in which findings are told.

A finding explains another if its code is named in the other's `explained_by` and it lies where it
can have caused it: in a model that both concern, upstream of it, begun no later, and no milder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from traindx.findings import Finding
from traindx.records import Site
from traindx.rules.order import Places

SLACK = 100
"""Steps by which a cause may be seen after its symptom has been: rules take time to be sure."""


def arrange(
    findings: Sequence[Finding], explained_by: Mapping[str, tuple[str, ...]], places: Places
) -> tuple[Finding, ...]:
    """Number the findings, name the causes of each, and put the roots first.

    Roots come before the findings they explain, active ones before cleared ones, then the more
    severe, then the more upstream, then the earlier.

    Args:
        findings: Unnumbered findings.
        explained_by: For each code, the codes whose finding explains one of it.
        places: Where their sites stand.
    """
    causes = [
        [
            i
            for i, cause in enumerate(findings)
            if cause.code in explained_by.get(symptom.code, ()) and explains(cause, symptom, places)
        ]
        for symptom in findings
    ]

    def rank(i: int) -> tuple[object, ...]:
        it = findings[i]
        place = places.of(it.evidence.site)
        return bool(causes[i]), not it.active, it.severity.rank, place, it.first_step, it.code

    order = sorted(range(len(findings)), key=rank)
    ids = {i: number for number, i in enumerate(order, start=1)}
    return tuple(
        replace(findings[i], id=ids[i], caused_by=tuple(sorted(ids[c] for c in causes[i])))
        for i in order
    )


def explains(cause: Finding, symptom: Finding, places: Places) -> bool:
    """Whether one finding lies where and when it can have caused another.

    A warning never hides an error, nor what has cleared what is still there.
    """
    return (
        cause is not symptom
        and cause.severity.rank <= symptom.severity.rank
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
    forward signal anywhere in the model lies upstream. And what is wrong with a model as a whole
    can come from any part of it.
    """
    here, there = cause.evidence.site, symptom.evidence.site
    if not places.meet(here, there):
        return False
    backward = cause.code.startswith("F") and symptom.code.startswith("G")
    whole = backward or not there.fqn or not places.in_model(there)
    return whole or places.of(here) <= max(places.of(there), places.of(_lost_at(symptom)))


def _lost_at(symptom: Finding) -> Site:
    """Where a symptom shows first: F001 names the layer that still sees, and loses it behind."""
    evidence = symptom.evidence
    behind = evidence.layers[:1] if symptom.code == "F001" else ()
    return Site(evidence.site.model, behind[0]) if behind else evidence.site
