"""L005 label-pair-mismatch: labels of another row, and of no row."""

from __future__ import annotations

from tests.rules.probing import Probed
from traindx.findings import Finding, Severity


def findings(
    own: float,
    shifted: float = 1.5,
    *,
    shift: int = 1,
    second: float = 2.0,
    follows: float = 4.0,
    rows: int = 1000,
    near: float = 0.4,
) -> list[Finding]:
    numbers = {"label_agreement": own, "label_agreement_shifted": shifted}
    probed = Probed("L005", "label-pairs", **numbers)
    seen = probed.seen(shift=shift, second=second, follows=follows, rows=rows, near=near)
    return seen.findings()


def test_fires_for_labels_that_are_a_row_late():
    (finding,) = findings(0.7, 60)
    assert finding.severity is Severity.ERROR
    assert finding.evidence.message == (
        "the label of each row follows from the inputs 1 before it (60 standard deviations of "
        "chance), and not from its own (0.7): the labels are late"
    )


def test_warns_of_labels_that_are_early():
    (finding,) = findings(0.7, 60, shift=-2)
    assert finding.severity is Severity.WARNING
    assert "the inputs 2 after it" in finding.evidence.message


def test_silent_where_a_rows_own_labels_follow_as_well():
    assert not findings(20, 60)


def test_silent_of_a_series():
    assert not findings(0.7, 60, follows=30)
    assert not findings(0.7, 60, second=20)


def test_warns_of_labels_of_no_row():
    (finding,) = findings(1.2)
    assert finding.severity is Severity.WARNING
    assert "of 1000 rows, the labels follow from the inputs no more" in finding.evidence.message


def test_silent_of_rows_that_are_few_or_without_a_structure():
    assert not findings(1.2, rows=400)
    assert not findings(1.2, near=0.9)


def test_silent_of_labels_that_follow_a_little():
    assert not findings(6)
