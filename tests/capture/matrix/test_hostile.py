"""Whatever a program does in the middle of a training, on measured steps and on the short way."""

from __future__ import annotations

import pytest

from tests.capture.matrix.hostile import CASES
from tests.capture.matrix.training import Case, compared

EVERY = [
    pytest.param(None, id="ladder"),
    pytest.param(1, id="each", marks=pytest.mark.slow),
    pytest.param(5, id="fifth", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_training_is_the_same_whatever_is_done_in_the_middle(case: Case, every: int | None):
    assert compared(case, every=every).run.steps > 0


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_training_is_the_same_with_the_trap_whatever_is_done_in_the_middle(case: Case):
    assert compared(case, trap_nan=True).run.steps > 0
