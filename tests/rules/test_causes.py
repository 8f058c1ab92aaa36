"""Which finding explains which: upstream before downstream, in time, and never in a circle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rules.recording import chain
from traindx.findings import Evidence, Finding, Severity
from traindx.records import RUN, Site
from traindx.report import story
from traindx.rules.catalog import catalog
from traindx.rules.causes import SLACK, arrange, explains
from traindx.rules.contexts import names
from traindx.rules.order import Places
from traindx.run import Run

NET, OTHER = replace(chain(5), name="net"), replace(chain(5), name="other")
for_others = tuple(replace(param, optimizers=("Adam",)) for param in OTHER.params)
RUN_OF_TWO = Run()
RUN_OF_TWO.models = {"net": NET, "other": replace(OTHER, params=for_others)}
PLACES = Places(RUN_OF_TWO)


def finding(
    code: str,
    site: Site,
    *,
    first: int = 0,
    severity: Severity = Severity.ERROR,
    active: bool = True,
) -> Finding:
    evidence = Evidence(site, first, "seen", {})
    return Finding(0, code, "x", severity, active, evidence, first, first, 1)


def layer(number: int, model: str = "net") -> Site:
    return Site(model, str(number))


# -- the catalogue -------------------------------------------------------------------------------


def test_every_rule_named_as_a_cause_exists():
    known = set(catalog())
    assert {(r.code, c) for r in catalog().values() for c in r.explained_by if c not in known} == (
        set()
    )


def test_no_rule_explains_itself_by_way_of_others():
    edges = {rule.code: set(rule.explained_by) for rule in catalog().values()}
    while leaves := {code for code, causes in edges.items() if not causes & edges.keys()}:
        edges = {code: causes for code, causes in edges.items() if code not in leaves}
    assert edges == {}


@pytest.mark.parametrize(
    ("symptom", "cause"),
    [
        ("G001", "F005"),
        ("G001", "F001"),
        ("F001", "F005"),
        ("F003", "O001"),
        ("F006", "O001"),
        ("G002", "O001"),
        ("F006", "G002"),
        ("O001", "G006"),
        ("G002", "G006"),
        ("F003", "G006"),
        ("F006", "G006"),
        ("G003", "F003"),
        ("N001", "N002"),
        ("N001", "N003"),
        ("N001", "N004"),
        ("N001", "O001"),
        ("F001", "F003"),
        ("F001", "O001"),
        ("N002", "N004"),
    ],
)
def test_the_order_of_diagnosis_is_in_the_rules(symptom: str, cause: str):
    assert cause in catalog()[symptom].explained_by


def test_a_rule_is_silent_only_in_contexts_that_there_are():
    assert all(set(rule.silent_in) <= set(names()) for rule in catalog().values())


# -- where ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "symptom", "explained"),
    [
        (layer(1), layer(3), True),
        (layer(3), layer(1), False),
        (layer(1), layer(3, "other"), False),
        (Site("net"), layer(3), True),
        (RUN, layer(3), True),
        (Site("", "SGD"), layer(3), True),
        (Site("", "SGD"), layer(3, "other"), False),
        (Site("", "Adam"), layer(3, "other"), True),
        (layer(3), Site("", "SGD"), True),
        (layer(3), Site("", "Adam"), False),
        (layer(3), Site("net+other"), True),
        (Site("net+other"), layer(3, "other"), True),
        (Site("net+elsewhere"), layer(3, "other"), False),
        (Site("", "SGD"), Site("", "SGD"), True),
        (Site("", "SGD"), Site("", "Adam"), False),
    ],
)
def test_a_cause_lies_upstream_in_a_model_that_both_concern(
    cause: Site, symptom: Site, explained: bool
):
    assert explains(finding("O001", cause), finding("N001", symptom), PLACES) is explained


def test_a_gradient_has_come_through_every_layer_behind_its_own():
    behind = finding("F003", layer(4))
    assert explains(behind, finding("G003", layer(1)), PLACES)
    assert not explains(behind, finding("F001", layer(1)), PLACES)
    assert not explains(behind, finding("G003", layer(1, "other")), PLACES)


# -- when ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "symptom", "explained"),
    [
        (0, 5000, True),
        (SLACK, 0, True),
        (SLACK + 1, 0, False),
        (10_000, 5000, True),
        (10_000 + SLACK + 1, 5000, False),
    ],
)
def test_a_cause_has_begun_before_its_symptom_or_is_seen_soon_after(
    cause: int, symptom: int, explained: bool
):
    one, other = finding("N004", layer(1), first=cause), finding("N001", layer(1), first=symptom)
    assert explains(one, other, PLACES) is explained


# -- how bad -------------------------------------------------------------------------------------


def test_a_warning_never_hides_an_error_nor_the_past_the_present():
    error, warning = finding("N001", layer(1)), finding("N001", layer(1), severity=Severity.WARNING)
    mild = finding("N004", layer(1), severity=Severity.WARNING)
    assert not explains(mild, error, PLACES)
    assert explains(mild, warning, PLACES)
    past = finding("N004", layer(1), active=False)
    assert not explains(past, error, PLACES)
    assert explains(past, replace(error, active=False), PLACES)


def order(*findings: Finding, edges: dict[str, tuple[str, ...]]) -> list[str]:
    return [f.code for f in arrange(findings, edges, PLACES)]


EDGE = {"B001": ("A001",)}


@pytest.mark.parametrize(
    ("severity", "told"),
    [
        (Severity.WARNING, ["A001", "B001", "C001", "D001"]),
        (Severity.INFO, ["B001", "C001", "D001", "A001"]),
    ],
)
def test_a_warning_that_may_be_the_cause_of_an_error_is_told_right_before_it(
    severity: Severity, told: list[str]
):
    others = finding("C001", layer(4)), finding("D001", layer(0), severity=Severity.WARNING)
    mild = finding("A001", layer(1), severity=severity)
    assert order(*others, mild, finding("B001", layer(1)), edges=EDGE) == told


def test_a_warning_downstream_of_an_error_is_told_after_it():
    mild = finding("A001", layer(2), severity=Severity.WARNING)
    assert order(mild, finding("B001", layer(1)), edges=EDGE) == ["B001", "A001"]


def test_a_warning_that_has_cleared_is_told_before_nothing_that_is_there():
    mild = finding("A001", layer(1), severity=Severity.WARNING, active=False)
    assert order(mild, finding("B001", layer(1)), edges=EDGE) == ["B001", "A001"]


def test_a_warning_is_not_told_before_an_error_that_another_explains():
    edges = {"B001": ("A001", "C001")}
    mild = finding("A001", layer(0), severity=Severity.WARNING)
    found = mild, finding("B001", layer(2)), finding("C001", layer(1))
    assert order(*found, edges=edges) == ["C001", "A001", "B001"]


def test_a_warning_that_is_explained_itself_stays_with_what_explains_it():
    edges = {"B001": ("A001",), "A001": ("W001",)}
    found = (
        finding("W001", layer(0), severity=Severity.WARNING),
        finding("A001", layer(1), severity=Severity.WARNING),
        finding("B001", layer(2)),
    )
    assert order(*found, edges=edges) == ["B001", "W001", "A001"]


# -- chains, circles, many -----------------------------------------------------------------------


def told(*findings: Finding, edges: dict[str, tuple[str, ...]]) -> list[list[str]]:
    """The codes of each root with those under it."""
    from traindx.findings import Verdict

    verdict = Verdict(arrange(findings, edges, PLACES))
    return [
        [root.finding.code, *(symptom.code for symptom in root.symptoms)]
        for root in story.roots(verdict)
    ]


CHAIN = {"C001": ("B001",), "B001": ("A001",)}


def test_a_chain_of_causes_has_one_root():
    chained = [finding(code, layer(1)) for code in ("C001", "B001", "A001")]
    assert [root[0] for root in told(*chained, edges=CHAIN)] == ["A001"]
    assert len(told(*chained, edges=CHAIN)[0]) == 3


def test_a_chain_with_a_missing_link_has_two_roots():
    broken = [finding(code, layer(1)) for code in ("C001", "A001")]
    assert len(told(*broken, edges=CHAIN)) == 2


def test_findings_that_explain_each_other_in_a_circle_are_all_told():
    circle = {"A001": ("B001",), "B001": ("A001",)}
    (group,) = told(finding("A001", layer(1)), finding("B001", layer(1)), edges=circle)
    assert sorted(group) == ["A001", "B001"]


def test_many_roots_are_all_told_the_worst_first_then_the_most_upstream_then_the_earliest():
    many = (
        finding("D001", layer(0), severity=Severity.WARNING),
        finding("C001", layer(2), first=1),
        finding("B001", layer(2), first=0),
        finding("A001", layer(4)),
        finding("E001", layer(0), severity=Severity.INFO),
        finding("F001", RUN),
    )
    order = [group[0] for group in told(*many, edges={})]
    assert order == ["F001", "B001", "C001", "A001", "D001", "E001"]
