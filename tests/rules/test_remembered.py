"""What rules remember from one measured step to the next."""

from __future__ import annotations

import numpy as np
import pytest

from traindx.measured import Measured
from traindx.quantities import QUANTITIES
from traindx.records import Scalar, Site
from traindx.rules.remembered import lately, remembered
from traindx.run import Run
from traindx.thinning import Pins

SITE = Site("net", "0")


def test_what_was_found_is_looked_for_again_once_the_state_is_another() -> None:
    run, asked = Run(), list[int]()

    def find() -> int:
        asked.append(len(asked))
        return asked[-1]

    assert [remembered(run, "it", state, find) for state in (1, 1, 2, 2, 1)] == [0, 0, 1, 1, 2]
    assert remembered(Run(), "it", 1, find) == 3


@pytest.mark.parametrize("lasts", [1, 3])
def test_what_held_is_looked_at_again_once_enough_was_added(lasts: int) -> None:
    run, looked = Run(), list[int]()
    for step in range(7):
        run.add(Scalar(step, "param.rms", 1.0, SITE))

        def holds(step: int = step) -> bool:
            looked.append(step)
            return True

        assert lately(run, "it", 0, reads=("param.rms", "loss"), lasts=lasts, holds=holds)
    assert looked == list(range(0, 7, lasts))


def test_what_did_not_hold_is_looked_at_each_time_and_so_is_another_state() -> None:
    run, looked = Run([Scalar(0, "param.rms", 1.0, SITE)]), list[int]()

    def ask(state: int, *, well: bool) -> bool:
        def holds() -> bool:
            looked.append(state)
            return well

        return lately(run, "it", state, reads=("param.rms",), lasts=9, holds=holds)

    assert [ask(0, well=False), ask(0, well=True), ask(0, well=False)] == [False, True, True]
    assert not ask(1, well=False)
    assert looked == [0, 0, 1]


def test_many_numbers_that_come_as_one_count_each() -> None:
    measured = Measured(Pins(), print)
    measured.add_numbers("param.rms", SITE, np.arange(5), np.ones(5))
    measured.add_number("param.rms", SITE, 5, 1.0)
    assert measured.additions(QUANTITIES["param.rms"]) == 6
