"""Results as data, as text and as a page."""

import json
import re

import pytest

from tests.norm.conformance.twin import Twin
from traindx.errors import DataError, UsageError
from traindx.findings import Severity
from traindx.norm.conformance.examine import examine
from traindx.norm.conformance.matrix import Matrix, document, merged, parsed, result
from traindx.norm.conformance.running import names_of
from traindx.norm.conformance.targets import entries
from traindx.report.conformance import cell, render
from traindx.report.conformance_markdown import page as markdown
from traindx.report.html.conformance import page


def of(kind: str, fault: str = "", name: str = "twin") -> Matrix:
    twin = Twin(kind, fault, name=name)
    return Matrix((result(twin, examine(twin)),), {})


def test_a_document_is_read_back_as_it_was() -> None:
    whole = of("batch_norm", "one pass")
    again = parsed(document(whole))
    assert document(again) == document(whole)
    assert again.worst is Severity.ERROR


@pytest.mark.parametrize("text", ["", "{}", '{"schema": 2, "targets": []}', "[1]"])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(DataError):
        parsed(text)


def test_numbers_that_are_not_finite_are_strings() -> None:
    text = document(of("batch_norm", "one pass"))
    content = json.loads(text, parse_constant=pytest.fail)
    shown = [number for one in content["targets"][0]["differences"] for number in one["got"]]
    assert "nan" in shown


def test_a_right_layer_has_a_matrix_without_errors() -> None:
    worst = of("layer_norm").worst
    assert worst in {None, Severity.INFO}


def test_targets_stand_beside_each_other_with_what_is_missing() -> None:
    several = merged(
        [of("layer_norm"), of("batch_norm", "eps 1e-3", "other"), Matrix((), {"gone": "no gone"})]
    )
    text = render(several)
    assert re.search(r"twin +other", text)
    assert "gone: no gone" in text
    assert cell(several.targets[0], "batch_norm") == "-"


def test_the_report_names_the_difference_with_both_outputs() -> None:
    text = render(of("layer_norm", "one pass clipped"))
    assert "error Layer one-pass-variance" in text
    assert re.search(r"got +-?\d", text)
    assert re.search(r"expected +-?\d", text)


def test_the_page_escapes_what_a_framework_says() -> None:
    html = page(of("layer_norm", "eps 1e-3", name="<script>alert(1)</script>"))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "default-src &#x27;none&#x27;" in html


def test_the_report_speaks_chinese() -> None:
    assert "eps 為 0.001，而非 1e-05" in render(of("layer_norm", "eps 1e-3"), language="zh-Hant")


def test_a_prefix_and_all_stand_for_several_targets() -> None:
    assert names_of(["keras"]) == ["keras-torch", "keras-jax", "keras-tensorflow"]
    assert names_of(["all"]) == list(entries())
    assert names_of(["torch", "torch"]) == ["torch"]


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(UsageError, match="got `theano`"):
        names_of(["theano"])


def test_a_table_of_markdown_holds_what_a_framework_says_in_one_cell() -> None:
    text = markdown(of("layer_norm", "eps 1e-3", name="a|b *c*"))
    assert r"| a\|b \*c\* |" in text.replace("|  |", "|")
    rows = [line for line in text.splitlines() if line.startswith("| info")]
    assert rows
    assert {line.replace(r"\|", "").count("|") for line in rows} == {7}
