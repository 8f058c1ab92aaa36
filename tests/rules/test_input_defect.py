"""L008 input-defect: NaN, copies, constants."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.before_training import Probing
from traindx.facts import Json
from traindx.findings import Severity

FINE: dict[str, Json] = {
    "samples": 32, "features": 20, "distinct": 32, "constant_fraction": 0.1, "whole": False,
    "broken": [],
}  # fmt: skip

EMPTY: dict[str, Json] = {
    "blank": 3, "filled": 0.01, "features": 784, "whole": True, "real": True, "distinct": 28,
}  # fmt: skip


def seen(nonfinite: float = 0, **changes: Json) -> Probing:
    run = Probing().number("probe.input_nonfinite", nonfinite)
    return run.seen("input-values", "", **{**FINE, **changes})


@pytest.mark.parametrize(
    ("nonfinite", "changes", "severity", "words"),
    [
        (3, {"broken": ["0"]}, Severity.ERROR, "3 elements of `0` are NaN or infinite"),
        (0, {"distinct": 1}, Severity.ERROR, "of the 32 samples of the batch only 1 differ"),
        (0, {"distinct": 1, "whole": True}, Severity.ERROR, "only 1 differ"),
        (0, {"distinct": 8}, Severity.WARNING, "only 8 differ"),
        (0, {"constant_fraction": 0.9}, Severity.INFO, "90% of the 20 features"),
        (0, EMPTY, Severity.WARNING, "3 of the 32 samples of the batch are nothing but zeros"),
    ],
)
def test_fires_for_a_batch_that_is_damaged(
    nonfinite: float, changes: dict[str, Json], severity: Severity, words: str
):
    (finding,) = seen(nonfinite, **changes).findings("L008")
    assert finding.severity is severity
    assert words in finding.evidence.message


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"distinct": 20},
        {"distinct": 4, "whole": True},
        {"samples": 4, "distinct": 1},
        {"constant_fraction": 0.95, "whole": True},
        {**EMPTY, "blank": 0},  # one-hot, or words of a text
        {**EMPTY, "filled": 0.2},  # black and white images, some of them black
        {**EMPTY, "real": False},  # tokens
        {**EMPTY, "features": 8},  # a few switches
        {**EMPTY, "whole": False},
    ],
)
def test_silent_for_usual_batches(changes: dict[str, Any]):
    assert not seen(**changes).findings("L008")


def test_silent_without_a_batch_to_look_at():
    assert Probing().why_not("L008") == "needs preflight"
