"""F013 axis-mixed-by-view on runs written by hand."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.facts import Json
from traindx.findings import Severity
from traindx.rules.catalog import find
from traindx.rules.engine import judge


def seen(**changes: Json) -> Probing:
    told: dict[str, Json] = {
        "kind": "Attention", "before": [8, 7, 16], "after": [8, 16, 7], "axis": 16, "by": "inside",
    }  # fmt: skip
    run = Probing().number("probe.moved_axes", 1)
    return run.seen("reshaped-axes", "block", **{**told, **changes})


def test_fires_where_an_axis_lies_elsewhere():
    (finding,) = seen().findings("F013")
    assert finding.severity is Severity.WARNING
    assert finding.evidence.site.fqn == "block"
    assert "8x7x16 is reshaped to 8x16x7, in which the axis of 16" in finding.evidence.message
    assert finding.evidence.fix == "x.permute(0, 2, 1)"


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"after": [8, 4, 7, 4], "axis": 7}, "split the axis with `view` first"),
        ({"before": [8, 4, 7, 4], "after": [8, 7, 16], "axis": 7}, "exchange axes with"),
        ({"by": "split", "before": [8, 7], "after": [7, 8]}, "x.view(8, 7, *x.shape[1:])"),
    ],
)
def test_the_fix_says_what_comes_first(changes: dict[str, Json], fix: str):
    (finding,) = seen(**changes).findings("F013")
    assert finding.evidence.fix.startswith(fix)


def test_the_first_of_a_module_is_told():
    run = seen().seen("reshaped-axes", "block", kind="Attention", before=[8, 16, 7],
                      after=[8, 7, 16], axis=16, by="inside")  # fmt: skip
    (finding,) = run.findings("F013")
    assert "8x7x16 is reshaped to 8x16x7" in finding.evidence.message
    assert finding.evidence.numbers["reshapes"] == 2


def test_silent_where_axes_are_only_split_and_merged():
    assert not Probing().number("probe.moved_axes", 0).findings("F013")


def test_silent_without_a_reshape():
    assert Probing().why_not("F013") == "needs preflight"


def test_samples_that_are_mixed_by_it_come_first():
    run = seen().number("probe.batch_mixing", 0.5)
    run.seen("batch-composition", "block", mode="evaluation", kind="Attention", mixing=0.5)
    verdict = judge(run.items, [find("E007"), find("F013")])
    assert [finding.code for finding in verdict.findings] == ["E007", "F013"]
    assert verdict.findings[1].caused_by == (1,)


def test_says_where_the_output_is_reshaped_on_the_way_to_its_loss():
    (finding,) = seen(by="loss", before=[16, 3, 8, 8], after=[1024, 3], axis=3).findings("F013")
    assert finding.evidence.message.startswith("on the way to the loss the output 16x3x8x8 of")
