"""Which finding explains which, and the order in which findings are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from traindx.findings import Finding
from traindx.rules.order import Places


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

    def explains(cause: Finding, symptom: Finding) -> bool:
        here, there = cause.evidence.site, symptom.evidence.site
        return (
            cause.code in explained_by.get(symptom.code, ())
            and cause is not symptom
            and here.model == there.model
            and places.of(here) <= places.of(there)
            and cause.severity.rank <= symptom.severity.rank
            and (cause.active or not symptom.active)
        )

    causes = [[i for i, one in enumerate(findings) if explains(one, it)] for it in findings]

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
