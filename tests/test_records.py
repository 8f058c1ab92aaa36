"""What holds of the items themselves."""

from array import array
from sys import getsizeof

import pytest

from traindx.records import Site, Vector

NUMBERS = (0.5, -2.0, 0.1)


@pytest.mark.parametrize("made_of", [NUMBERS, [*NUMBERS], array("d", NUMBERS)])
def test_a_vector_is_the_same_whatever_its_numbers_came_in(made_of):
    vector = Vector(3, "norm.batch_mean", Site("net"), made_of)
    assert vector == Vector(3, "norm.batch_mean", Site("net"), NUMBERS)
    assert [*vector.values] == [*NUMBERS]


def test_a_vector_holds_a_number_in_eight_bytes():
    few, many = (Vector(0, "", Site("net"), [0.5] * count).values for count in (1, 1001))
    assert getsizeof(many) - getsizeof(few) == 1000 * 8


def test_a_vector_keeps_nothing_of_what_it_was_made_of():
    numbers = array("d", NUMBERS)
    vector = Vector(0, "", Site("net"), numbers)
    numbers[0] = 7.0
    assert vector.values[0] == NUMBERS[0]
