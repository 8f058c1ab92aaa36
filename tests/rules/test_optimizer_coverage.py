"""O011 optimizer-coverage: parameters in no optimizer, or in one twice."""

from __future__ import annotations

import pytest

from tests.rules.before_training import Probing
from traindx.facts import Json
from traindx.findings import Severity

WHOLE: dict[str, Json] = {
    "optimizer": "Adam", "outside": [], "twice": [], "num_outside": 0, "num_twice": 0,
    "after_held": 0,
}  # fmt: skip


def seen(**changes: Json) -> Probing:
    run = Probing().number("probe.outside_optimizer", 0)
    return run.seen("optimizer-coverage", "", **{**WHOLE, **changes})


@pytest.mark.parametrize(
    ("changes", "severity", "words"),
    [
        (
            {"outside": ["head.weight"], "num_outside": 1, "after_held": 1},
            Severity.WARNING,
            "no optimizer holds 1 parameter of net that the loss reaches: `head.weight`",
        ),
        (
            {"outside": ["stem.weight"], "num_outside": 1},
            Severity.INFO,
            "that the loss reaches: `stem.weight`",
        ),
        (
            {"twice": ["fc.weight", "fc.bias"], "num_twice": 2},
            Severity.WARNING,
            "Adam holds 2 parameters of net twice: `fc.weight`, `fc.bias`",
        ),
    ],
)
def test_fires_for_parameters_that_are_missing_or_held_twice(
    changes: dict[str, Json], severity: Severity, words: str
):
    (finding,) = seen(**changes).findings("O011")
    assert finding.severity is severity
    assert words in finding.evidence.message


def test_silent_where_each_is_held_once():
    assert not seen().findings("O011")


def test_silent_without_an_optimizer():
    assert Probing().why_not("O011") == "needs preflight"
